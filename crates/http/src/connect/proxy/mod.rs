//! Proxies: their URLs, and the tunnels that they open to a host.
//!
//! [`environment`] chooses the proxy of a host, [`connect_method`] and [`socks5`] are the two protocols of tunnels. By hand:
//! hyper-util's proxy matcher ignores URLs that it cannot parse, knows no ports in `NO_PROXY`, and sends requests to the
//! loopback interface through the proxy. The SOCKS crates connect by themselves, or need an older `thiserror` or `socket2`.

mod connect_method;
mod environment;
mod socks5;

use std::fmt;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::call::StepError;
use crate::origin::{Origin, Scheme};

pub(crate) use self::environment::Proxies;
#[cfg(feature = "__tls")]
pub(super) use self::environment::is_loopback;

/// The port of a SOCKS proxy whose URL has none.
const SOCKS_PORT: u16 = 1080;

/// A proxy: its protocol, address and credentials.
///
/// Every connection through it is a tunnel, for plain HTTP as well.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    protocol: ProxyProtocol,
    /// The host and port of the proxy itself.
    address: Origin,
    credentials: Option<Credentials>,
}

/// How a tunnel is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProxyProtocol {
    /// The CONNECT method of HTTP/1.1, over TCP.
    Http,
    /// The CONNECT method of HTTP/1.1, over TLS to the proxy.
    Https,
    /// SOCKS 5, with addresses that this client resolves.
    Socks5,
    /// SOCKS 5, with names that the proxy resolves.
    Socks5h,
}

/// User name and password for a proxy.
#[derive(Clone, PartialEq, Eq)]
struct Credentials {
    user: Vec<u8>,
    password: Vec<u8>,
}

/// The error of a proxy URL that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{source_name} {url} is not valid: write http://host:port, https://host:port, socks5://host:port or \
     socks5h://host:port, with user:password@ before the host if the proxy needs it"
)]
pub struct InvalidProxy {
    /// Where the URL comes from: `the proxy URL`, or the variable.
    source_name: String,
    url: String,
}

/// Where a tunnel ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TunnelTarget<'a> {
    /// A host whose name the proxy resolves.
    Name(&'a Origin),
    /// An address of that host.
    Address(&'a Origin, SocketAddr),
}

impl TunnelTarget<'_> {
    fn origin(&self) -> &Origin {
        match self {
            TunnelTarget::Name(origin) | TunnelTarget::Address(origin, _) => origin,
        }
    }
}

impl Proxy {
    /// Parses the URL of a proxy: `http://host:port`, `https://host:port` (TLS to the proxy itself), `socks5://host:port`,
    /// or `socks5h://host:port` (the proxy resolves names), each with `user:password@` before the host or without. A URL
    /// without a scheme is one of an HTTP proxy.
    ///
    /// ```
    /// use perihelion_http::Proxy;
    ///
    /// assert!(Proxy::new("http://proxy.example:3128").is_ok());
    /// assert!(Proxy::new("proxy.example:3128").is_ok());
    /// assert!(Proxy::new("socks5h://me:secret@proxy.example").is_ok());
    /// assert!(Proxy::new("ftp://proxy.example").is_err());
    /// ```
    pub fn new(url: &str) -> Result<Self, InvalidProxy> {
        Proxy::parse(url).ok_or_else(|| InvalidProxy {
            source_name: "the proxy URL".to_owned(),
            url: without_password(url),
        })
    }

    fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://").unwrap_or(("http", url.trim()));
        let protocol = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyProtocol::Http,
            "https" => ProxyProtocol::Https,
            "socks5" => ProxyProtocol::Socks5,
            "socks5h" => ProxyProtocol::Socks5h,
            _ => return None,
        };
        let rest = rest.trim_end_matches('/');
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(Credentials::parse(credentials)?), host),
            None => (None, rest),
        };
        // The scheme gives the default port. SOCKS has one of its own, which is set if the host ends without a port.
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let address = match protocol {
            ProxyProtocol::Http => format!("http://{host}"),
            ProxyProtocol::Https => format!("https://{host}"),
            ProxyProtocol::Socks5 | ProxyProtocol::Socks5h if has_port => format!("http://{host}"),
            ProxyProtocol::Socks5 | ProxyProtocol::Socks5h => format!("http://{host}:{SOCKS_PORT}"),
        };
        let address: http::Uri = address.parse().ok()?;
        let address = Origin::from_uri(&address).ok().filter(|_| address.path() == "/")?;
        Some(Proxy { protocol, address, credentials })
    }

    /// The host and port of the proxy itself.
    pub(crate) fn address(&self) -> &Origin {
        &self.address
    }

    /// Whether TLS is used on the way to the proxy.
    pub(crate) fn uses_tls(&self) -> bool {
        self.address.scheme() == Scheme::Https
    }

    /// Whether a tunnel ends at an address that this client has resolved.
    pub(crate) fn needs_address(&self) -> bool {
        self.protocol == ProxyProtocol::Socks5
    }

    /// Opens a tunnel to `target`. Afterwards the stream is connected to it.
    pub(crate) async fn tunnel(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        target: TunnelTarget<'_>,
    ) -> Result<(), StepError> {
        let credentials = self.credentials.as_ref();
        match self.protocol {
            ProxyProtocol::Http | ProxyProtocol::Https => {
                connect_method::tunnel(stream, target.origin(), credentials).await
            }
            ProxyProtocol::Socks5 | ProxyProtocol::Socks5h => {
                socks5::tunnel(stream, target, credentials).await
            }
        }
    }
}

impl Credentials {
    /// Parses `user:password`. SOCKS allows 255 bytes for each; no proxy needs more.
    fn parse(text: &str) -> Option<Self> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let credentials = Credentials { user: percent_decode(user), password: percent_decode(password) };
        let fits = credentials.user.len() <= 255 && credentials.password.len() <= 255;
        fits.then_some(credentials)
    }
}

/// Leaves the credentials out.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxy").field(&self.protocol).field(&self.address).finish()
    }
}

fn without_password(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => url.to_owned(),
    }
}

fn percent_decode(text: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_url_has_a_protocol_an_address_and_credentials() {
        use ProxyProtocol::{Http, Https, Socks5, Socks5h};
        for (url, protocol, address) in [
            ("p", Http, "http://p:80"),
            ("http://p:3128/", Http, "http://p:3128"),
            ("HTTPS://P", Https, "https://p:443"),
            ("https://p:3128", Https, "https://p:3128"),
            ("socks5://p", Socks5, "http://p:1080"),
            ("socks5h://[::1]", Socks5h, "http://[::1]:1080"),
            ("socks5h://[::1]:9050", Socks5h, "http://[::1]:9050"),
        ] {
            let proxy = Proxy::new(url).expect(url);
            assert_eq!((proxy.protocol, proxy.address().to_string().as_str()), (protocol, address), "{url}");
            assert!(proxy.credentials.is_none(), "{url}");
        }
        let proxy = Proxy::new("socks5://me:p%40ss@p").expect("it is valid");
        let credentials = proxy.credentials.as_ref().expect("it has some");
        assert_eq!((&credentials.user[..], &credentials.password[..]), (&b"me"[..], &b"p@ss"[..]));
        assert!(!format!("{proxy:?}").contains("ss@"));
    }

    #[test]
    fn the_error_of_an_invalid_proxy_hides_its_password() {
        let long = format!("socks5://me:{}@p", "secret".repeat(50));
        for url in ["socks4://me:secret@p", "http://me:secret@p:port", "https://me:secret@", "ftp://p", &long]
        {
            let error = Proxy::new(url).expect_err(url).to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.contains("http://host:port"), "{error}");
        }
        assert!(Proxy::new("http://p/path").is_err());
    }
}
