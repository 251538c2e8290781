//! The URL of a control port: `http://`, a host and a port. Pure.

use http::Uri;

use crate::error::ControlError;

/// Checks a control URL and returns it as `http://host:port`. The scheme may be missing, a slash at the end is ignored.
pub(crate) fn normalize(url: &str) -> Result<String, ControlError> {
    let invalid = |problem: &str| ControlError::invalid_url(url, problem);
    let full = if url.contains("://") { url.trim().to_owned() } else { format!("http://{}", url.trim()) };
    let parsed: Uri = full.parse().map_err(|_| invalid("it is not a URL"))?;
    if parsed.scheme_str() != Some("http") {
        return Err(invalid("it must begin with http://"));
    }
    if !matches!(parsed.path(), "" | "/") || parsed.query().is_some() {
        return Err(invalid("it must end after the port"));
    }
    let host = parsed.host().filter(|host| !host.is_empty()).ok_or_else(|| invalid("it has no host"))?;
    let port = parsed.port_u16().ok_or_else(|| invalid("it has no port"))?;
    Ok(format!("http://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_url_has_a_host_and_a_port_and_nothing_else() {
        for (url, expected) in [
            ("http://localhost:1234", "http://localhost:1234"),
            ("http://localhost:1234/", "http://localhost:1234"),
            ("localhost:9", "http://localhost:9"),
            (" 127.0.0.1:80 ", "http://127.0.0.1:80"),
            ("http://[::1]:5", "http://[::1]:5"),
        ] {
            assert_eq!(normalize(url).as_deref(), Ok(expected), "{url}");
        }
        for (url, problem) in [
            ("", "not a URL"),
            ("a b", "not a URL"),
            ("https://localhost:1234", "http://"),
            ("http://localhost", "no port"),
            ("http://localhost:1234/clock", "after the port"),
            ("http://:1", "URL"),
        ] {
            let error = normalize(url).expect_err(url).to_string();
            assert!(error.contains(problem), "{url}: {error}");
        }
    }
}
