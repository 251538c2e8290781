//! Which hosts use a proxy: the variables of the environment, or one proxy for all.
//!
//! The variables mean what they mean to curl, with two differences: the loopback interface never uses a proxy of the
//! environment, as in Go, and `HTTP_PROXY` may be in capitals.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{InvalidProxy, Proxy, without_password};
use crate::origin::{Origin, Scheme};

/// Chooses the proxy for a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    /// The proxy for plain HTTP, or why it is not usable.
    http: Option<Result<Proxy, InvalidProxy>>,
    /// The proxy for HTTPS, or why it is not usable.
    https: Option<Result<Proxy, InvalidProxy>>,
    no_proxy: Vec<NoProxyEntry>,
    /// Whether the loopback interface is reached without a proxy: so if the proxy comes from the environment.
    skips_loopback: bool,
}

/// An entry of `NO_PROXY`: hosts that are reached without a proxy, on any port or on one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NoProxyEntry {
    hosts: NoProxyHosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NoProxyHosts {
    All,
    /// The addresses of a network, or one address.
    Network(IpNet),
    /// This domain and its subdomains.
    Domain(String),
}

impl Proxies {
    /// Uses one proxy for all hosts.
    pub(crate) fn all(proxy: Result<Proxy, InvalidProxy>) -> Self {
        Proxies { http: Some(proxy.clone()), https: Some(proxy), ..Proxies::default() }
    }

    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`; the lower-case names take precedence. A variable
    /// that is not a proxy URL is an error for the hosts that would use it, and for no other.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| {
            variable(name).filter(|value| !value.trim().is_empty()).map(|value| (name.to_owned(), value))
        };
        let either = |name: &str| set(&name.to_ascii_lowercase()).or_else(|| set(name));
        // In a CGI script HTTP_PROXY is the request header `Proxy`, which anyone can set.
        let http =
            if variable("REQUEST_METHOD").is_some() { set("http_proxy") } else { either("HTTP_PROXY") };
        let all = either("ALL_PROXY");
        let proxy = |named: Option<(String, String)>| {
            let (source_name, url) = named.or_else(|| all.clone())?;
            Some(Proxy::parse(&url).ok_or_else(|| InvalidProxy { source_name, url: without_password(&url) }))
        };
        Proxies {
            http: proxy(http),
            https: proxy(either("HTTPS_PROXY")),
            no_proxy: either("NO_PROXY").map_or_else(Vec::new, |(_, list)| parse_no_proxy(&list)),
            skips_loopback: true,
        }
    }

    /// The proxy for `target`, or `None` if it is reached directly. Fails if it would need a proxy that is not usable.
    pub(crate) fn for_target(&self, target: &Origin) -> Result<Option<&Proxy>, &InvalidProxy> {
        let proxy = match target.scheme() {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        };
        let Some(proxy) = proxy else { return Ok(None) };
        let direct = self.skips_loopback && is_loopback(target.host_name())
            || self.no_proxy.iter().any(|entry| entry.matches(target));
        if direct { Ok(None) } else { proxy.as_ref().map(Some) }
    }
}

/// Whether `host` names the loopback interface of this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn parse_no_proxy(list: &str) -> Vec<NoProxyEntry> {
    let entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    entries.map(parse_entry).collect()
}

fn parse_entry(entry: &str) -> NoProxyEntry {
    // A colon is that of a port, unless it is one of several of an IPv6 address without brackets.
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    };
    // Brackets belong to an IPv6 address, whether its prefix length stands inside or outside of them.
    let name = name.replace(['[', ']'], "");
    let hosts = match (name.as_str(), name.parse::<IpAddr>(), name.parse::<IpNet>()) {
        ("*", _, _) => NoProxyHosts::All,
        (_, Ok(address), _) => NoProxyHosts::Network(address.into()),
        (_, _, Ok(network)) => NoProxyHosts::Network(network),
        _ => {
            let domain = name.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
            NoProxyHosts::Domain(domain)
        }
    };
    NoProxyEntry { hosts, port }
}

impl NoProxyEntry {
    fn matches(&self, target: &Origin) -> bool {
        let host = target.host_name();
        let matches_host = match &self.hosts {
            NoProxyHosts::All => true,
            NoProxyHosts::Network(network) => {
                host.parse::<IpAddr>().is_ok_and(|address| network.contains(&address))
            }
            NoProxyHosts::Domain(domain) => host
                .trim_end_matches('.')
                .strip_suffix(domain.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
        };
        matches_host && self.port.is_none_or(|port| port == target.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(set: &[(&str, &str)]) -> Proxies {
        Proxies::from_environment(|name| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn origin(url: &str) -> Origin {
        Origin::from_uri(&url.parse().expect("a URL")).expect("it has an origin")
    }

    #[track_caller]
    fn check(set: &[(&str, &str)], cases: &[(&str, Option<&str>)]) {
        let proxies = environment(set);
        for (url, expected) in cases {
            let found = proxies.for_target(&origin(url)).expect("the variables are valid");
            let found = found.map(|proxy| proxy.address().to_string());
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
        check(&[("ALL_PROXY", "socks5://p:9050")], &[("https://a", Some("http://p:9050"))]);
    }

    #[test]
    fn no_proxy_and_loopback_hosts_are_reached_directly() {
        let (p, all) = (Some("http://p:80"), ("ALL_PROXY", "p"));
        check(&[all], &[("http://localhost:1", None), ("http://127.0.0.9", None), ("http://[::1]:1", None)]);
        check(
            &[all, ("NO_PROXY", "a.example, .b.example:81,*.c.example 10.0.0.1,[fe80::1]:5")],
            &[
                ("http://a.example", None),
                ("http://x.A.example", None),
                ("http://xa.example", p),
                ("http://b.example", p),
                ("http://b.example:81", None),
                ("http://x.c.example", None),
                ("http://10.0.0.1:99", None),
                ("http://10.0.0.10", p),
                ("http://[fe80::1]:5", None),
                ("http://[fe80::1]:6", p),
            ],
        );
        check(&[all, ("NO_PROXY", "*")], &[("https://a", None)]);
        check(&[all, ("NO_PROXY", "*:81")], &[("https://a", p), ("http://a:81", None)]);
    }

    #[test]
    fn no_proxy_has_networks_with_ports_or_without() {
        let (p, all) = (Some("http://p:80"), ("ALL_PROXY", "p"));
        check(
            &[
                all,
                ("NO_PROXY", "10.0.0.0/8,192.168.1.0/24:8081,fd00::/8,[2001:db8::]/32,[2001:db9::/32]:81"),
            ],
            &[
                ("http://10.200.3.4", None),
                ("http://11.0.0.1", p),
                ("http://192.168.1.7:8081", None),
                ("http://192.168.1.7", p),
                ("http://[fd12::1]", None),
                ("http://[fe80::1]", p),
                ("http://[2001:db8::5]:9", None),
                ("http://[2001:db9::5]:81", None),
                ("http://[2001:db9::5]:82", p),
                ("http://10.example", p),
            ],
        );
    }

    #[test]
    fn an_unusable_proxy_is_an_error_for_the_hosts_that_need_it_and_names_its_variable() {
        for (name, url) in [("ALL_PROXY", "socks4://me:secret@p"), ("https_proxy", "http://p:port")] {
            let proxies = environment(&[(name, url), ("NO_PROXY", "a.example")]);
            for direct in ["https://localhost:8081", "https://a.example"] {
                assert_eq!(proxies.for_target(&origin(direct)), Ok(None), "{name}={url}");
            }
            let error = proxies.for_target(&origin("https://b.example")).expect_err("it needs the proxy");
            let message = error.to_string();
            assert!(message.contains(name), "{message}");
            assert!(message.contains("http://host:port"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
