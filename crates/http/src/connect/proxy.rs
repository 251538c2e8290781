//! HTTP proxies: which hosts go through one, and how it is asked for the way.

use std::fmt;
use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::authority::{Authority, Scheme};
use crate::call::Failure;
use crate::connection::Socket;
use crate::error::ErrorKind;
use crate::exchange::Step;

/// A proxy's answer is no longer than this.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// A proxy: where it is, and how to introduce oneself.
///
/// The way through it is asked for with CONNECT, for plain HTTP as well; what is said afterwards is between
/// the two ends.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    address: Authority,
    /// The value of `Proxy-Authorization`.
    credentials: Option<String>,
}

/// Why a proxy's URL was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proxy {url} is not understood: write it as http://host:port or http://user:password@host:port")]
pub struct BadProxy {
    url: String,
}

impl Proxy {
    /// The proxy at `http://host:port`, or `http://user:password@host:port`.
    ///
    /// ```
    /// use perihelion_http::Proxy;
    ///
    /// assert!(Proxy::new("http://proxy.example:3128").is_ok());
    /// assert!(Proxy::new("proxy.example:3128").is_ok());
    /// assert!(Proxy::new("socks5://proxy.example").is_err());
    /// ```
    pub fn new(url: &str) -> Result<Self, BadProxy> {
        let bad = || BadProxy { url: without_password(url) };
        let rest = match url.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
            Some(_) => return Err(bad()),
            None => url,
        };
        let rest = rest.trim_end_matches('/');
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials), host),
            None => (None, rest),
        };
        let address = format!("http://{host}").parse().ok().and_then(|uri| Authority::of(&uri).ok());
        let credentials = credentials.map(|credentials| {
            let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
            let pair: Vec<u8> = [decoded(user), b":".to_vec(), decoded(password)].concat();
            format!("Basic {}", STANDARD.encode(pair))
        });
        Ok(Proxy { address: address.ok_or_else(bad)?, credentials })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> &Authority {
        &self.address
    }

    /// Asks for the way to `target`. Afterwards the socket leads there.
    pub(crate) async fn tunnel(&self, socket: &mut Socket, target: &Authority) -> Result<(), Failure> {
        let question = self.question(target);
        let closed = |error: io::Error| Failure::new(ErrorKind::Unreachable, Step::Proxy).because(error);
        socket.write_all(question.as_bytes()).await.map_err(closed)?;
        let mut answer = Vec::new();
        loop {
            match read_answer(&answer) {
                Answer::NeedMore if answer.len() >= ANSWER_BYTES_MAX => return Err(garbage()),
                Answer::NeedMore => {}
                Answer::Yes => return Ok(()),
                Answer::No(status) => {
                    let story = format!("the proxy answered {status} for {target}");
                    return Err(Failure::new(ErrorKind::Unreachable, Step::Proxy).because(story));
                }
                Answer::Garbage => return Err(garbage()),
            }
            if socket.read_buf(&mut answer).await.map_err(closed)? == 0 {
                return Err(closed(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    fn question(&self, target: &Authority) -> String {
        let (host, port) = (target.host(), target.port());
        let mut question = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(credentials) = &self.credentials {
            question.push_str("Proxy-Authorization: ");
            question.push_str(credentials);
            question.push_str("\r\n");
        }
        question.push_str("\r\n");
        question
    }
}

fn garbage() -> Failure {
    Failure::new(ErrorKind::Malformed, Step::Proxy).because("what the proxy answered is not HTTP")
}

/// Credentials are nobody's business.
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

fn decoded(text: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(text).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    NeedMore,
    Yes,
    No(u16),
    Garbage,
}

fn read_answer(answer: &[u8]) -> Answer {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Answer::NeedMore;
    };
    // HTTP/1.1 200 Connection established
    let status = answer
        .strip_prefix(b"HTTP/1.")
        .and_then(|rest| rest.get(2..5))
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    match status {
        // Neither TLS nor HTTP lets the other end speak first.
        Some(200..300) if answer.len() > end + 4 => Answer::Garbage,
        Some(200..300) => Answer::Yes,
        Some(status) => Answer::No(status),
        None => Answer::Garbage,
    }
}

/// Which proxy for which host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    pub(crate) http: Option<Proxy>,
    pub(crate) https: Option<Proxy>,
    exempt: Vec<Exempt>,
    /// From the environment, which is not meant for what is on this machine.
    loopback_exempt: bool,
}

/// Hosts that `NO_PROXY` exempts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exempt {
    Everything,
    /// This name and those below it; a port if it is for that one only.
    Name {
        name: String,
        port: Option<u16>,
    },
}

impl Proxies {
    /// The same proxy for everything.
    pub(crate) fn all(proxy: Proxy) -> Self {
        Proxies { http: Some(proxy.clone()), https: Some(proxy), ..Proxies::default() }
    }

    /// As `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in lower case before upper.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadProxy> {
        let either = |name: &str| {
            let set = |name: &str| variable(name).filter(|value| !value.is_empty());
            set(&name.to_ascii_lowercase()).or_else(|| set(name))
        };
        // A server that runs scripts passes the header `Proxy:` on as HTTP_PROXY, for anybody to set.
        let http =
            if variable("REQUEST_METHOD").is_some() { variable("http_proxy") } else { either("HTTP_PROXY") };
        let all = either("ALL_PROXY");
        let proxy =
            |named: Option<String>| named.or_else(|| all.clone()).map(|url| Proxy::new(&url)).transpose();
        Ok(Proxies {
            http: proxy(http)?,
            https: proxy(either("HTTPS_PROXY"))?,
            exempt: either("NO_PROXY").map_or_else(Vec::new, |list| exempt(&list)),
            loopback_exempt: true,
        })
    }

    /// The proxy for `target`, if it goes through one.
    pub(crate) fn for_target(&self, target: &Authority) -> Option<&Proxy> {
        let proxy = match target.scheme() {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        }?;
        let exempt = self.loopback_exempt && is_loopback(target.host_name())
            || self.exempt.iter().any(|exempt| exempt.covers(target));
        (!exempt).then_some(proxy)
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn exempt(list: &str) -> Vec<Exempt> {
    list.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .map(|entry| {
            if entry == "*" {
                return Exempt::Everything;
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
            Exempt::Name { name, port }
        })
        .collect()
}

impl Exempt {
    fn covers(&self, target: &Authority) -> bool {
        match self {
            Exempt::Everything => true,
            Exempt::Name { name, port } => {
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

    fn environment(set: &[(&str, &str)]) -> Result<Proxies, BadProxy> {
        Proxies::from_environment(|name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[track_caller]
    fn check(set: &[(&str, &str)], cases: &[(&str, Option<&str>)]) {
        let proxies = environment(set).expect("the variables are understood");
        for (url, expected) in cases {
            let target = Authority::of(&url.parse().expect("a URL")).expect("it has an authority");
            let found = proxies.for_target(&target).map(|proxy| proxy.address().to_string());
            assert_eq!(found.as_deref(), *expected, "{url} with {set:?}");
        }
    }

    #[test]
    fn the_environment_says_which_proxy() {
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
    fn some_hosts_need_no_proxy() {
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
    fn a_wrong_variable_is_named_without_its_password() {
        let error = environment(&[("HTTPS_PROXY", "socks5://me:secret@p")]).expect_err("not HTTP");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(error.to_string().contains("http://host:port"), "{error}");
    }

    #[test]
    fn the_question_introduces_itself() {
        let target = Authority::new(Scheme::Https, "a.example", 443);
        let proxy = Proxy::new("http://me:p%40ss@p:3128").expect("it is understood");
        assert_eq!(
            proxy.question(&target),
            "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n"
        );
        assert!(!format!("{proxy:?}").contains("bWU6"));
    }

    #[test]
    fn answers_are_understood_or_garbage() {
        for (answer, expected) in [
            ("", Answer::NeedMore),
            ("HTTP/1.1 200 OK\r\n", Answer::NeedMore),
            ("HTTP/1.1 200 OK\r\n\r\n", Answer::Yes),
            ("HTTP/1.0 200 Connection established\r\nVia: p\r\n\r\n", Answer::Yes),
            ("HTTP/1.1 407 Authenticate\r\n\r\nsorry", Answer::No(407)),
            ("HTTP/1.1 200 OK\r\n\r\nhello", Answer::Garbage),
            ("SSH-2.0\r\n\r\n", Answer::Garbage),
            ("HTTP/1.1\r\n\r\n", Answer::Garbage),
        ] {
            assert_eq!(read_answer(answer.as_bytes()), expected, "{answer:?}");
        }
    }
}
