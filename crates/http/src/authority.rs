//! The other end of a connection: scheme, lower-cased host and port.
//!
//! Two URLs with the same [`Authority`] may share a connection. Hosts compare without regard to case, a
//! missing port is the scheme's own, and user names and passwords are no part of it.
//!
//! An [`Authority`] is made once per host. To find what belongs to a URL, a map keyed by authorities is
//! asked with an [`AuthorityRef`], which points into the URL: `map.get(&reference as &dyn Key)` builds no
//! string and copies none.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use http::Uri;

/// How a connection to an authority is secured, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// Plain TCP.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// The scheme as a URL begins with it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// The port of a URL that names none.
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

/// Why a URL has no authority this client can connect to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAuthority {
    /// A path alone, or a scheme other than the two.
    #[error("the URL does not begin with http:// or https://: give the whole URL, with its scheme")]
    Scheme,
    /// Nothing between the scheme and the path.
    #[error("the URL names no host: write it between the scheme and the path")]
    Host,
    /// A colon and something that is no port.
    #[error("the URL's port is not a number from 0 to 65535")]
    Port,
}

/// Scheme, lower-cased host and port. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    scheme: Scheme,
    host: Arc<str>,
    port: u16,
}

impl Authority {
    /// The authority of these three; the host in any case, an IPv6 address in brackets.
    pub fn new(scheme: Scheme, host: &str, port: u16) -> Authority {
        AuthorityRef { scheme, host, port }.to_owned()
    }

    /// The authority of a URL.
    pub fn of(url: &Uri) -> Result<Authority, BadAuthority> {
        AuthorityRef::of(url).map(AuthorityRef::to_owned)
    }

    /// Plain or secured.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host in lower case; an IPv6 address in brackets, as in a URL.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The host as name look-up and certificates know it: an IPv6 address without its brackets.
    pub fn host_name(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// The port, the scheme's own if the URL named none.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// `https://localhost:8081`, with the port even where it is the scheme's own.
impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Authority { scheme, host, port } = self;
        write!(f, "{}://{host}:{port}", scheme.as_str())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An authority that points into a URL, whose host may be in any case.
#[derive(Clone, Copy, Debug)]
pub struct AuthorityRef<'a> {
    /// Plain or secured.
    pub scheme: Scheme,
    /// The host as the URL writes it.
    pub host: &'a str,
    /// The port, the scheme's own if the URL names none.
    pub port: u16,
}

impl<'a> AuthorityRef<'a> {
    /// The authority of a URL, in place.
    pub fn of(url: &'a Uri) -> Result<AuthorityRef<'a>, BadAuthority> {
        let scheme = match url.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(BadAuthority::Scheme),
        };
        let authority = url.authority().ok_or(BadAuthority::Host)?;
        let host = authority.host();
        if host.is_empty() || host == "[]" {
            return Err(BadAuthority::Host);
        }
        let port = match authority.port_u16() {
            Some(port) => port,
            None if names_no_port(authority.as_str()) => scheme.default_port(),
            None => return Err(BadAuthority::Port),
        };
        Ok(AuthorityRef { scheme, host, port })
    }

    /// A copy of its own.
    pub fn to_owned(self) -> Authority {
        let AuthorityRef { scheme, host, port } = self;
        let host = if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Arc::from(host.to_ascii_lowercase())
        } else {
            Arc::from(host)
        };
        Authority { scheme, host, port }
    }
}

/// Whether there is nothing after the host, or a colon alone: `localhost`, `[::1]:`.
fn names_no_port(authority: &str) -> bool {
    let host_and_port = authority.rsplit('@').next().unwrap_or(authority);
    let after_address = host_and_port.rsplit(']').next().unwrap_or(host_and_port);
    after_address.split_once(':').is_none_or(|(_, port)| port.is_empty())
}

/// What an [`Authority`] and an [`AuthorityRef`] have in common: a map keyed by the one can be asked with
/// the other.
pub trait Key {
    /// The three parts, the host in any case.
    fn parts(&self) -> AuthorityRef<'_>;
}

impl Key for Authority {
    fn parts(&self) -> AuthorityRef<'_> {
        AuthorityRef { scheme: self.scheme, host: &self.host, port: self.port }
    }
}

impl Key for AuthorityRef<'_> {
    fn parts(&self) -> AuthorityRef<'_> {
        *self
    }
}

impl PartialEq for dyn Key + '_ {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (self.parts(), other.parts());
        one.port == other.port && one.scheme == other.scheme && one.host.eq_ignore_ascii_case(other.host)
    }
}

impl Eq for dyn Key + '_ {}

impl Hash for dyn Key + '_ {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let AuthorityRef { scheme, host, port } = self.parts();
        // Lower-cased piece by piece, on the stack: hosts are short, hashers like long pieces.
        let mut piece = [0; 64];
        for chunk in host.as_bytes().chunks(piece.len()) {
            let piece = &mut piece[..chunk.len()];
            piece.copy_from_slice(chunk);
            piece.make_ascii_lowercase();
            state.write(piece);
        }
        state.write_u32(u32::from(port) << 1 | u32::from(scheme == Scheme::Https));
    }
}

impl Hash for Authority {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self as &dyn Key).hash(state);
    }
}

impl<'a> Borrow<dyn Key + 'a> for Authority {
    fn borrow(&self) -> &(dyn Key + 'a) {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn urls_have_the_authority_they_connect_to() {
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
            ("http://host:65536/", Err(BadAuthority::Port)),
            ("/dbs/one", Err(BadAuthority::Scheme)),
            ("ftp://host/", Err(BadAuthority::Scheme)),
        ];
        for (url, expected) in cases {
            let authority = Authority::of(&url.parse().expect("a URL")).map(|found| found.to_string());
            assert_eq!(authority, expected.map(str::to_owned), "{url}");
        }
    }

    #[test]
    fn an_address_loses_its_brackets_where_names_are_looked_up() {
        for (host, expected) in [("[::1]", "::1"), ("127.0.0.1", "127.0.0.1"), ("Host", "host")] {
            assert_eq!(Authority::new(Scheme::Http, host, 80).host_name(), expected);
        }
    }

    #[test]
    fn a_map_is_asked_with_a_url_in_any_case() {
        let long = "a".repeat(63) + "." + &"b".repeat(63);
        let mut map = HashMap::new();
        map.insert(Authority::new(Scheme::Https, "Account.Example", 443), 1);
        map.insert(Authority::new(Scheme::Https, &long, 443), 2);
        let found = |url: &str| {
            let url: Uri = url.parse().expect("a URL");
            map.get(&AuthorityRef::of(&url).expect("it has an authority") as &dyn Key).copied()
        };
        assert_eq!(found("https://account.example/a"), Some(1));
        assert_eq!(found("https://ACCOUNT.EXAMPLE:443"), Some(1));
        assert_eq!(found(&format!("https://{}/", long.to_uppercase())), Some(2));
        assert_eq!(found("http://account.example:443"), None);
        assert_eq!(found("https://account.example:8443"), None);
        assert_eq!(found("https://account.example.org"), None);
    }
}
