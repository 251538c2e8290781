//! HTTP proxies: which hosts use one, and the CONNECT request that opens a tunnel through it.
//!
//! The variables are read by hand: hyper-util's proxy matcher ignores URLs that it cannot parse, where this client
//! reports them, and sends requests to the loopback interface through the proxy.

use std::fmt;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::call::StepError;
use crate::error::ErrorKind;
use crate::origin::{Origin, Scheme};
use crate::stream::Socket;
use crate::trace::Step;

/// The longest response to CONNECT that is accepted.
const RESPONSE_BYTES_MAX: usize = 8 * 1024;
/// The most headers of a response to CONNECT that are accepted.
const RESPONSE_HEADERS_MAX: usize = 100;

/// An HTTP proxy: its address and credentials.
///
/// Every connection through it is a tunnel opened with CONNECT, for plain HTTP as well.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    address: Origin,
    /// The value of `Proxy-Authorization`.
    credentials: Option<String>,
}

/// The error of a proxy URL that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proxy URL {url} is not valid: write it as http://host:port or http://user:password@host:port")]
pub struct InvalidProxy {
    url: String,
}

impl Proxy {
    /// Parses `http://host:port` or `http://user:password@host:port`.
    ///
    /// ```
    /// use perihelion_http::Proxy;
    ///
    /// assert!(Proxy::new("http://proxy.example:3128").is_ok());
    /// assert!(Proxy::new("proxy.example:3128").is_ok());
    /// assert!(Proxy::new("socks5://proxy.example").is_err());
    /// ```
    pub fn new(url: &str) -> Result<Self, InvalidProxy> {
        let invalid = || InvalidProxy { url: without_password(url) };
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(invalid()),
            None => url,
        };
        let rest = rest.trim_end_matches('/');
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials), host),
            None => (None, rest),
        };
        let address = format!("http://{host}").parse().ok().and_then(|uri| Origin::from_uri(&uri).ok());
        let credentials = credentials.map(|credentials| {
            let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
            let pair: Vec<u8> = [percent_decode(user), b":".to_vec(), percent_decode(password)].concat();
            format!("Basic {}", STANDARD.encode(pair))
        });
        Ok(Proxy { address: address.ok_or_else(invalid)?, credentials })
    }

    /// The scheme, host and port of the proxy itself.
    pub(crate) fn address(&self) -> &Origin {
        &self.address
    }

    /// Opens a tunnel to `target`. Afterwards the socket is connected to it.
    pub(crate) async fn tunnel(&self, socket: &mut Socket, target: &Origin) -> Result<(), StepError> {
        let request = self.connect_request(target);
        let closed =
            |error: io::Error| StepError::new(ErrorKind::Unreachable, Step::Proxy).with_source(error);
        socket.write_all(request.as_bytes()).await.map_err(closed)?;
        let mut response = Vec::new();
        // Ends with a complete response, the end of the connection, or the limit of bytes.
        loop {
            match parse_connect_response(&response) {
                ConnectResponse::Incomplete if response.len() >= RESPONSE_BYTES_MAX => {
                    return Err(malformed_response());
                }
                ConnectResponse::Incomplete => {}
                ConnectResponse::Accepted => return Ok(()),
                ConnectResponse::Rejected(status) => {
                    let message = format!("the proxy responded with {status} to CONNECT for {target}");
                    return Err(StepError::new(ErrorKind::Unreachable, Step::Proxy).with_source(message));
                }
                ConnectResponse::Malformed => return Err(malformed_response()),
            }
            if socket.read_buf(&mut response).await.map_err(closed)? == 0 {
                return Err(closed(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    fn connect_request(&self, target: &Origin) -> String {
        let (host, port) = (target.host(), target.port());
        let mut request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(credentials) = &self.credentials {
            request.push_str("Proxy-Authorization: ");
            request.push_str(credentials);
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        request
    }
}

fn malformed_response() -> StepError {
    StepError::new(ErrorKind::Malformed, Step::Proxy)
        .with_source("the response of the proxy is not valid HTTP")
}

/// Leaves the credentials out.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxy").field(&self.address).finish()
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

/// The response of a proxy to CONNECT, as far as it has been received.
#[derive(Debug, PartialEq, Eq)]
enum ConnectResponse {
    Incomplete,
    Accepted,
    Rejected(u16),
    Malformed,
}

fn parse_connect_response(bytes: &[u8]) -> ConnectResponse {
    let mut headers = [httparse::EMPTY_HEADER; RESPONSE_HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    match (response.parse(bytes), response.code) {
        // Neither TLS nor HTTP lets the server send first, so nothing may follow.
        (Ok(httparse::Status::Complete(end)), Some(200..300)) if bytes.len() > end => {
            ConnectResponse::Malformed
        }
        (Ok(httparse::Status::Complete(_)), Some(200..300)) => ConnectResponse::Accepted,
        (Ok(httparse::Status::Complete(_)), Some(status)) => ConnectResponse::Rejected(status),
        (Ok(httparse::Status::Partial), _) => ConnectResponse::Incomplete,
        (Ok(httparse::Status::Complete(_)), None) | (Err(_), _) => ConnectResponse::Malformed,
    }
}

/// Chooses the proxy for a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    pub(crate) http: Option<Proxy>,
    pub(crate) https: Option<Proxy>,
    no_proxy: Vec<NoProxyEntry>,
    /// Whether the loopback interface is reached without a proxy: so if the proxy comes from the environment.
    skips_loopback: bool,
}

/// An entry of `NO_PROXY`: hosts that are reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NoProxyEntry {
    AllHosts,
    /// This domain and its subdomains, on any port or on one.
    Domain {
        name: String,
        port: Option<u16>,
    },
}

impl Proxies {
    /// Uses one proxy for all hosts.
    pub(crate) fn all(proxy: Proxy) -> Self {
        Proxies { http: Some(proxy.clone()), https: Some(proxy), ..Proxies::default() }
    }

    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`; the lower-case names take precedence.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidProxy> {
        let either = |name: &str| {
            let set = |name: &str| variable(name).filter(|value| !value.is_empty());
            set(&name.to_ascii_lowercase()).or_else(|| set(name))
        };
        // In a CGI script HTTP_PROXY is the request header `Proxy`, which anyone can set.
        let http =
            if variable("REQUEST_METHOD").is_some() { variable("http_proxy") } else { either("HTTP_PROXY") };
        let all = either("ALL_PROXY");
        let proxy =
            |named: Option<String>| named.or_else(|| all.clone()).map(|url| Proxy::new(&url)).transpose();
        Ok(Proxies {
            http: proxy(http)?,
            https: proxy(either("HTTPS_PROXY"))?,
            no_proxy: either("NO_PROXY").map_or_else(Vec::new, |list| parse_no_proxy(&list)),
            skips_loopback: true,
        })
    }

    /// The proxy for `target`, or `None` if it is reached directly.
    pub(crate) fn for_target(&self, target: &Origin) -> Option<&Proxy> {
        let proxy = match target.scheme() {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        }?;
        let direct = self.skips_loopback && is_loopback(target.host_name())
            || self.no_proxy.iter().any(|entry| entry.matches(target));
        (!direct).then_some(proxy)
    }
}

/// Whether `host` names the loopback interface of this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn parse_no_proxy(list: &str) -> Vec<NoProxyEntry> {
    list.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            if entry == "*" {
                return NoProxyEntry::AllHosts;
            }
            let (name, port) = match entry.rsplit_once(':') {
                Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
                    Ok(port) => (name, Some(port)),
                    Err(_) => (entry, None),
                },
                _ => (entry, None),
            };
            let name = name.trim_start_matches('*').trim_start_matches('.');
            let name = name.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
            NoProxyEntry::Domain { name, port }
        })
        .collect()
}

impl NoProxyEntry {
    fn matches(&self, target: &Origin) -> bool {
        match self {
            NoProxyEntry::AllHosts => true,
            NoProxyEntry::Domain { name, port } => {
                let host = target.host_name();
                let below = host
                    .strip_suffix(name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                below && port.is_none_or(|port| port == target.port())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(set: &[(&str, &str)]) -> Result<Proxies, InvalidProxy> {
        Proxies::from_environment(|name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[track_caller]
    fn check(set: &[(&str, &str)], cases: &[(&str, Option<&str>)]) {
        let proxies = environment(set).expect("the variables are valid");
        for (url, expected) in cases {
            let target = Origin::from_uri(&url.parse().expect("a URL")).expect("it has an origin");
            let found = proxies.for_target(&target).map(|proxy| proxy.address().to_string());
            assert_eq!(found.as_deref(), *expected, "{url} with {set:?}");
        }
    }

    #[test]
    fn the_environment_chooses_the_proxy() {
        let (p, q) = (Some("http://p:3128"), Some("http://q:80"));
        check(&[], &[("http://a", None), ("https://a", None)]);
        check(&[("HTTP_PROXY", "http://p:3128")], &[("http://a", p), ("https://a", None)]);
        check(
            &[("HTTPS_PROXY", "p:3128"), ("http_proxy", "http://Q/")],
            &[("http://a", q), ("https://a", p)],
        );
        check(&[("ALL_PROXY", "p:3128"), ("http_proxy", "q")], &[("http://a", q), ("https://a", p)]);
        check(&[("https_proxy", "p:3128"), ("HTTPS_PROXY", "q")], &[("https://a", p)]);
        check(&[("https_proxy", ""), ("HTTPS_PROXY", "q")], &[("https://a", q)]);
        check(&[("HTTP_PROXY", "q"), ("REQUEST_METHOD", "GET")], &[("http://a", None)]);
    }

    #[test]
    fn no_proxy_and_loopback_hosts_are_reached_directly() {
        let (p, all) = (Some("http://p:80"), ("ALL_PROXY", "p"));
        check(&[all], &[("http://localhost:1", None), ("http://127.0.0.9", None), ("http://[::1]:1", None)]);
        check(
            &[all, ("NO_PROXY", "a.example, .b.example:81,*.c.example,10.0.0.1,[fe80::1]:5")],
            &[
                ("http://a.example", None),
                ("http://x.A.example", None),
                ("http://xa.example", p),
                ("http://b.example", p),
                ("http://b.example:81", None),
                ("http://x.c.example", None),
                ("http://10.0.0.1:99", None),
                ("http://[fe80::1]:5", None),
                ("http://[fe80::1]:6", p),
            ],
        );
        check(&[all, ("NO_PROXY", "*")], &[("https://a", None)]);
    }

    #[test]
    fn the_error_of_an_invalid_proxy_hides_its_password() {
        let error = environment(&[("HTTPS_PROXY", "socks5://me:secret@p")]).expect_err("not HTTP");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(error.to_string().contains("http://host:port"), "{error}");
    }

    #[test]
    fn the_connect_request_has_the_credentials() {
        let target = Origin::new(Scheme::Https, "a.example", 443);
        let proxy = Proxy::new("http://me:p%40ss@p:3128").expect("it is valid");
        assert_eq!(
            proxy.connect_request(&target),
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n"
        );
        assert!(!format!("{proxy:?}").contains("bWU6"));
    }

    #[test]
    fn connect_responses_are_parsed() {
        for (response, expected) in [
            ("", ConnectResponse::Incomplete),
            ("HTTP/1.1 200 OK\r\n", ConnectResponse::Incomplete),
            ("HTTP/1.1 200 OK\r\n\r\n", ConnectResponse::Accepted),
            ("HTTP/1.0 200 Connection established\r\nVia: p\r\n\r\n", ConnectResponse::Accepted),
            ("HTTP/1.1 407 Authenticate\r\n\r\nsorry", ConnectResponse::Rejected(407)),
            ("HTTP/1.1 200 OK\r\n\r\nhello", ConnectResponse::Malformed),
            ("SSH-2.0\r\n\r\n", ConnectResponse::Malformed),
            ("HTTP/1.1\r\n\r\n", ConnectResponse::Malformed),
        ] {
            assert_eq!(parse_connect_response(response.as_bytes()), expected, "{response:?}");
        }
    }
}
