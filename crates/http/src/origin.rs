//! Origins: scheme, host and port of a URL (RFC 6454), which decide what connections a request may use.
//!
//! Two URLs with the same [`Origin`] may share a connection. Hosts compare case-insensitively, a missing port is
//! the default port of the scheme, and user names and passwords are ignored.
//!
//! An [`Origin`] is made once per host. A map that is keyed by origins can be searched with an [`OriginRef`], which
//! borrows from the URL: `map.get(&reference as &dyn OriginKey)` allocates nothing.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use http::Uri;

/// The scheme of a URL: with TLS or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Plain HTTP, without encryption.
    Http,
    /// HTTP over a TLS connection.
    Https,
}

impl Scheme {
    /// The scheme as it is written in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port of a URL without a port.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Why a URL has no origin that this client can connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOrigin {
    /// The URL has no scheme, or one other than the two.
    #[error("the URL does not begin with http:// or https://: give the whole URL, with its scheme")]
    Scheme,
    /// The URL has no host.
    #[error("the URL has no host: write it between the scheme and the path")]
    Host,
    /// The port of the URL is not a number in range.
    #[error("the URL's port is not a number from 0 to 65535")]
    Port,
}

/// Scheme, lower-cased host and port. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Origin {
    scheme: Scheme,
    host: Arc<str>,
    port: u16,
}

impl Origin {
    /// Creates an origin. The host may be in any case; an IPv6 address is in brackets.
    pub fn new(scheme: Scheme, host: &str, port: u16) -> Origin {
        OriginRef { scheme, host, port }.to_owned()
    }

    /// The origin of a URL.
    pub fn from_uri(url: &Uri) -> Result<Origin, InvalidOrigin> {
        OriginRef::from_uri(url).map(OriginRef::to_owned)
    }

    /// The scheme, which says whether TLS is used.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host in lower case; an IPv6 address in brackets, as in a URL.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host as DNS and certificates use it: an IPv6 address without its brackets.
    pub fn host_name(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// The port, which is the default of the scheme if the URL had none.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Writes `https://localhost:8081`, with the port even if it is the default.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Origin { scheme, host, port } = self;
        write!(f, "{}://{host}:{port}", scheme.as_str())
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An origin that borrows from a URL, whose host may be in any case.
#[derive(Clone, Copy, Debug)]
pub struct OriginRef<'a> {
    /// The scheme, which says whether TLS is used.
    pub scheme: Scheme,
    /// The host as it is written in the URL.
    pub host: &'a str,
    /// The port, which is the default of the scheme if the URL has none.
    pub port: u16,
}

impl<'a> OriginRef<'a> {
    /// The origin of a URL, borrowed from it.
    pub fn from_uri(url: &'a Uri) -> Result<OriginRef<'a>, InvalidOrigin> {
        let scheme = match url.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(InvalidOrigin::Scheme),
        };
        let authority = url.authority().ok_or(InvalidOrigin::Host)?;
        let host = authority.host();
        if host.is_empty() || host == "[]" {
            return Err(InvalidOrigin::Host);
        }
        let port = match authority.port_u16() {
            Some(port) => port,
            None if has_no_port(authority.as_str()) => scheme.default_port(),
            None => return Err(InvalidOrigin::Port),
        };
        Ok(OriginRef { scheme, host, port })
    }

    /// Copies it into an owned origin, in lower case.
    pub fn to_owned(self) -> Origin {
        let OriginRef { scheme, host, port } = self;
        let host = if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Arc::from(host.to_ascii_lowercase())
        } else {
            Arc::from(host)
        };
        Origin { scheme, host, port }
    }
}

/// Whether nothing follows the host, or only a colon: `localhost`, `[::1]:`. `http` reports both as a missing port, as
/// it does an invalid one.
fn has_no_port(authority: &str) -> bool {
    let host_and_port = authority.rsplit('@').next().unwrap_or(authority);
    let after_address = host_and_port.rsplit(']').next().unwrap_or(host_and_port);
    after_address.split_once(':').is_none_or(|(_, port)| port.is_empty())
}

/// What [`Origin`] and [`OriginRef`] have in common, so that a map with the one as key can be searched with the other.
pub trait OriginKey {
    /// The parts of the origin; the host is in any case.
    fn parts(&self) -> OriginRef<'_>;
}

impl OriginKey for Origin {
    fn parts(&self) -> OriginRef<'_> {
        OriginRef { scheme: self.scheme, host: &self.host, port: self.port }
    }
}

impl OriginKey for OriginRef<'_> {
    fn parts(&self) -> OriginRef<'_> {
        *self
    }
}

impl PartialEq for dyn OriginKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (self.parts(), other.parts());
        one.port == other.port && one.scheme == other.scheme && one.host.eq_ignore_ascii_case(other.host)
    }
}

impl Eq for dyn OriginKey + '_ {}

impl Hash for dyn OriginKey + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let OriginRef { scheme, host, port } = self.parts();
        // Lower-cased in a buffer on the stack: most hosts fit into one chunk, and hashers are fast on long writes.
        let mut buffer = [0; 64];
        for chunk in host.as_bytes().chunks(buffer.len()) {
            let lower = &mut buffer[..chunk.len()];
            lower.copy_from_slice(chunk);
            lower.make_ascii_lowercase();
            state.write(lower);
        }
        state.write_u32(u32::from(port) << 1 | u32::from(scheme == Scheme::Https));
    }
}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self as &dyn OriginKey).hash(state);
    }
}

impl<'a> Borrow<dyn OriginKey + 'a> for Origin {
    fn borrow(&self) -> &(dyn OriginKey + 'a) {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_origin_of_a_url_is_what_it_connects_to() {
        let cases = [
            ("http://localhost", Ok("http://localhost:80")),
            ("https://localhost/", Ok("https://localhost:443")),
            ("https://localhost:/", Ok("https://localhost:443")),
            ("https://LocalHost:8081/dbs", Ok("https://localhost:8081")),
            (
                "https://user:secret@Account.documents.azure.com/",
                Ok("https://account.documents.azure.com:443"),
            ),
            ("http://[::1]/", Ok("http://[::1]:80")),
            ("http://[FE80::1]:8081/", Ok("http://[fe80::1]:8081")),
            ("http://host:0/", Ok("http://host:0")),
            ("http://host:65535/", Ok("http://host:65535")),
            ("http://host:65536/", Err(InvalidOrigin::Port)),
            ("/dbs/one", Err(InvalidOrigin::Scheme)),
            ("ftp://host/", Err(InvalidOrigin::Scheme)),
        ];
        for (url, expected) in cases {
            let origin = Origin::from_uri(&url.parse().expect("a URL")).map(|found| found.to_string());
            assert_eq!(origin, expected.map(str::to_owned), "{url}");
        }
    }

    #[test]
    fn an_ipv6_address_has_no_brackets_as_host_name() {
        for (host, expected) in [("[::1]", "::1"), ("127.0.0.1", "127.0.0.1"), ("Host", "host")] {
            assert_eq!(Origin::new(Scheme::Http, host, 80).host_name(), expected);
        }
    }

    #[test]
    fn a_map_is_searched_with_a_url_in_any_case() {
        let long = "a".repeat(63) + "." + &"b".repeat(63);
        let mut map = HashMap::new();
        map.insert(Origin::new(Scheme::Https, "Account.Example", 443), 1);
        map.insert(Origin::new(Scheme::Https, &long, 443), 2);
        let found = |url: &str| {
            let url: Uri = url.parse().expect("a URL");
            map.get(&OriginRef::from_uri(&url).expect("it has an origin") as &dyn OriginKey).copied()
        };
        assert_eq!(found("https://account.example/a"), Some(1));
        assert_eq!(found("https://ACCOUNT.EXAMPLE:443"), Some(1));
        assert_eq!(found(&format!("https://{}/", long.to_uppercase())), Some(2));
        assert_eq!(found("http://account.example:443"), None);
        assert_eq!(found("https://account.example:8443"), None);
        assert_eq!(found("https://account.example.org"), None);
    }
}
