//! `AccountEndpoint=…;AccountKey=…;`, as portals and `peri up` print it.

use std::str::FromStr;

use http::Uri;
use protocol::authorization::{EMULATOR_KEY, Key};
use thiserror::Error;

/// Where `peri up` listens unless it is told otherwise.
const LOCAL_ENDPOINT: &str = "http://localhost:8081";

/// Where an account is, and the key to it.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionString {
    /// Scheme, host and port, without a slash at the end.
    pub(crate) endpoint: String,
    pub(crate) key: Key,
}

/// A text that is none.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum BadConnectionString {
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error("'{0}' is no part of it; it has AccountEndpoint=… and AccountKey=…")]
    Unknown(String),
    #[error("its endpoint '{0}' is no http:// or https:// URL of a host")]
    BadEndpoint(String),
    #[error("its key is not base64")]
    BadKey,
}

impl ConnectionString {
    /// The account of a `peri up` that was told nothing.
    pub(crate) fn local() -> ConnectionString {
        let key = Key::from_base64(EMULATOR_KEY).expect("the well-known key is one");
        ConnectionString { endpoint: LOCAL_ENDPOINT.to_owned(), key }
    }

    /// The same, as text.
    pub(crate) fn local_text() -> String {
        format!("AccountEndpoint={LOCAL_ENDPOINT}/;AccountKey={EMULATOR_KEY};")
    }
}

impl FromStr for ConnectionString {
    type Err = BadConnectionString;

    fn from_str(text: &str) -> Result<ConnectionString, BadConnectionString> {
        let (mut endpoint, mut key) = (None, None);
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            // The key ends with `=` itself. What is not understood is not repeated whole: it may be secret.
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            match name {
                _ if name.eq_ignore_ascii_case("AccountEndpoint") => endpoint = Some(value),
                _ if name.eq_ignore_ascii_case("AccountKey") => key = Some(value),
                // Some portals add the name of a database.
                _ if name.eq_ignore_ascii_case("Database") => {}
                _ => return Err(BadConnectionString::Unknown(name.chars().take(20).collect())),
            }
        }
        let endpoint = endpoint.ok_or(BadConnectionString::Missing("AccountEndpoint"))?;
        let key = key.ok_or(BadConnectionString::Missing("AccountKey"))?;
        let bad = || BadConnectionString::BadEndpoint(endpoint.to_owned());
        let uri: Uri = endpoint.parse().map_err(|_| bad())?;
        let is_bare = matches!(uri.path(), "" | "/") && uri.query().is_none();
        match (uri.scheme_str(), uri.authority()) {
            (Some(scheme @ ("http" | "https")), Some(authority)) if is_bare => Ok(ConnectionString {
                endpoint: format!("{scheme}://{authority}"),
                key: Key::from_base64(key).map_err(|_| BadConnectionString::BadKey)?,
            }),
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_that_portals_print_is_read() {
        for (text, endpoint) in [
            (
                "AccountEndpoint=https://a.documents.azure.com:443/;AccountKey=a2V5;",
                "https://a.documents.azure.com:443",
            ),
            ("accountkey=a2V5; accountendpoint=http://localhost:8081", "http://localhost:8081"),
            ("AccountEndpoint=http://[::1]:1/;AccountKey=a2V5;Database=d", "http://[::1]:1"),
        ] {
            assert_eq!(text.parse::<ConnectionString>().unwrap().endpoint, endpoint, "{text}");
        }
        let printed = format!("AccountEndpoint=http://localhost:8081/;AccountKey={EMULATOR_KEY};");
        assert!(printed.parse::<ConnectionString>().is_ok());
    }

    #[test]
    fn anything_else_says_what_is_wrong_and_keeps_keys_to_itself() {
        for (text, fragment) in [
            ("", "no AccountEndpoint"),
            ("AccountEndpoint=http://h/", "no AccountKey"),
            ("AccountEndpoint=ftp://h/;AccountKey=a2V5", "ftp://h/"),
            ("AccountEndpoint=http://h/x;AccountKey=a2V5", "http://h/x"),
            ("AccountEndpoint=localhost:8081;AccountKey=a2V5", "localhost:8081"),
            ("AccountEndpoint=http://h/;AccountKey=!!", "not base64"),
            ("Endpoint=sb://h;SharedAccessKey=secret", "'Endpoint'"),
        ] {
            let error = text.parse::<ConnectionString>().unwrap_err().to_string();
            assert!(error.contains(fragment) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
