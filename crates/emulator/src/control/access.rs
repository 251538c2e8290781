//! Who may use the control port.
//!
//! Input: the head of a request. Output: whether its route is carried out. Requests of other people's web pages
//! are refused: by their host and origin, and, for requests that change something, by a header that a page cannot
//! send without asking first (the preflight of CORS, which this port never grants). With a token, everything but
//! health and metrics needs it.

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use subtle::ConstantTimeEq as _;

use super::ControlError;
use crate::access::HostNames;

/// The header that requests which change something need. Its value is the token, if there is one.
const CONTROL_HEADER: &str = "x-perihelion-control";

/// Who may use the control port of an account.
#[derive(Clone, Debug, Default)]
pub(crate) struct ControlAccess {
    /// The host names that requests may be addressed to.
    pub(crate) host_names: HostNames,
    /// The token that requests need; none if everyone who can connect may use the port.
    pub(crate) token: Option<String>,
}

impl ControlAccess {
    /// Refuses a request that somebody else's page may have sent, or that lacks the token.
    pub(super) fn check(&self, parts: &Parts) -> Result<(), ControlError> {
        self.host_names
            .check(parts)
            .map_err(|error| ControlError::new(StatusCode::FORBIDDEN, "Forbidden", format!("{error}")))?;
        let reads = [Method::GET, Method::HEAD].contains(&parts.method);
        if reads && is_open(parts.uri.path()) {
            return Ok(());
        }
        let header = parts.headers.get(CONTROL_HEADER);
        match (&self.token, header) {
            (Some(token), Some(given)) if bool::from(token.as_bytes().ct_eq(given.as_bytes())) => Ok(()),
            (Some(_), _) => Err(ControlError::new(
                StatusCode::UNAUTHORIZED,
                "Unauthorized",
                format!(
                    "this control port needs its token in the header {CONTROL_HEADER}: give commands of peri \
                     --control-token or PERI_CONTROL_TOKEN, and curl -H '{CONTROL_HEADER}: TOKEN'"
                ),
            )),
            (None, given)
                if reads || given.is_some() || parts.headers.get(CONTENT_TYPE).is_some_and(is_json) =>
            {
                Ok(())
            }
            (None, _) => Err(ControlError::new(
                StatusCode::FORBIDDEN,
                "Forbidden",
                format!(
                    "a request that changes something needs a header that no web page can send unasked: add \
                     '{CONTROL_HEADER}: 1' (curl -H '{CONTROL_HEADER}: 1')"
                ),
            )),
        }
    }
}

/// Whether a path is open without the token: for the probes of orchestrators, and for metrics.
fn is_open(path: &str) -> bool {
    let path = path.trim_matches('/');
    matches!(path, "health" | "metrics") || path.starts_with("health/")
}

/// Whether a body is called JSON, which a page cannot do without a preflight either.
fn is_json(value: &HeaderValue) -> bool {
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn status(token: Option<&str>, method: Method, path: &str, headers: &[(&str, &str)]) -> u16 {
        let access = ControlAccess { token: token.map(str::to_owned), ..ControlAccess::default() };
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost:1234");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match access.check(&request.body(()).unwrap().into_parts().0) {
            Ok(()) => 200,
            Err(error) => error.status(),
        }
    }

    #[test]
    fn a_change_needs_a_header_that_a_page_cannot_send_unasked() {
        for (method, headers, expected) in [
            (Method::GET, &[][..], 200),
            (Method::HEAD, &[][..], 200),
            (Method::POST, &[][..], 403),
            (Method::DELETE, &[][..], 403),
            (Method::POST, &[("content-type", "text/plain")][..], 403),
            (Method::POST, &[("content-type", "application/x-www-form-urlencoded")][..], 403),
            (Method::POST, &[("content-type", "multipart/form-data; application/json")][..], 403),
            (Method::POST, &[("content-type", "application/json-seq")][..], 403),
            (Method::POST, &[("content-type", "Application/JSON; charset=utf-8")][..], 200),
            (Method::POST, &[(CONTROL_HEADER, "1")][..], 200),
            (Method::DELETE, &[(CONTROL_HEADER, "1")][..], 200),
            (Method::POST, &[(CONTROL_HEADER, "1"), ("origin", "http://localhost:3000")][..], 403),
            (Method::GET, &[("origin", "null")][..], 403),
        ] {
            assert_eq!(status(None, method.clone(), "/faults", headers), expected, "{method} {headers:?}");
        }
    }

    #[test]
    fn with_a_token_only_health_and_metrics_are_open() {
        let given = [(CONTROL_HEADER, "secret")];
        for (path, method, headers, expected) in [
            ("/health", Method::GET, &[][..], 200),
            ("/health/ready", Method::GET, &[][..], 200),
            ("/metrics", Method::HEAD, &[][..], 200),
            ("/health/ready", Method::POST, &[("content-type", "application/json")][..], 401),
            ("/healthy", Method::GET, &[][..], 401),
            ("/requests", Method::GET, &[][..], 401),
            ("/requests", Method::GET, &[(CONTROL_HEADER, "1")][..], 401),
            ("/requests", Method::GET, &[(CONTROL_HEADER, "secret2")][..], 401),
            ("/faults", Method::POST, &[("content-type", "application/json")][..], 401),
            ("/requests", Method::GET, &given[..], 200),
            ("/faults", Method::POST, &given[..], 200),
        ] {
            let found = status(Some("secret"), method.clone(), path, headers);
            assert_eq!(found, expected, "{method} {path} {headers:?}");
        }
    }
}
