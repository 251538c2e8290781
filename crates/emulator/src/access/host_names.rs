//! The host names that an account answers to.
//!
//! A web page whose name an attacker resolves to a loopback address (DNS rebinding) sends requests that the
//! browser holds for those of the page's own server. They differ from honest ones in their `host` only. So a
//! request is served if its host is a name or an address that the account is known by, and if the page that sent
//! it, if one did, comes from the same host and port.

use std::borrow::Cow;
use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use server::Bind;

/// The host names that an account answers to: `localhost`, addresses, and names that were added.
#[derive(Clone, Debug, Default)]
pub struct HostNames {
    /// Names in lower case; one that begins with a dot stands for all names that end with it.
    names: Vec<String>,
    addresses: Addresses,
}

/// The IP addresses that may be used as a host. An address in a URL cannot be resolved to another one, so what
/// matters is only whether the account listens there.
#[derive(Clone, Copy, Debug, Default)]
enum Addresses {
    /// Addresses of the loopback interface.
    #[default]
    Loopback,
    /// Addresses of the loopback interface, and one more.
    And(IpAddr),
    /// Every address: the account listens on every interface.
    All,
}

/// Why a request is not served: somebody else's page may have sent it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForeignRequest {
    /// The host of the request is none of the account's.
    #[error(
        "the account does not answer to the host name '{0}'; use localhost, or start it with --allow-host {0} \
         if the name is its own"
    )]
    Host(String),
    /// The host of the request cannot be read, or there are several.
    #[error("the host of the request is not valid")]
    InvalidHost,
    /// A page of another origin sent the request.
    #[error("the request comes from a web page of another origin, '{0}', and is refused")]
    Origin(String),
}

impl HostNames {
    /// The names of an account that listens on `bind`.
    pub fn of_bind(bind: Bind) -> HostNames {
        let addresses = match bind {
            Bind::Loopback => Addresses::Loopback,
            Bind::Address(address) if address.is_unspecified() => Addresses::All,
            Bind::Address(address) if address.is_loopback() => Addresses::Loopback,
            Bind::Address(address) => Addresses::And(address),
        };
        HostNames { names: Vec::new(), addresses }
    }

    /// Adds a name. One that begins with a dot stands for all names that end with it.
    pub fn allow(&mut self, name: &str) {
        self.names.push(name.trim().trim_end_matches('.').to_ascii_lowercase());
    }

    /// Whether the account answers to `host`, a name or an address without a port.
    pub fn contains(&self, host: &str) -> bool {
        if host.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse::<IpAddr>() {
            let address = address.to_canonical();
            return address.is_loopback()
                || match self.addresses {
                    Addresses::Loopback => false,
                    Addresses::And(own) => own.to_canonical() == address,
                    Addresses::All => true,
                };
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        host == "localhost"
            || self.names.iter().any(|name| match name.starts_with('.') {
                true => host.len() > name.len() && host.ends_with(name),
                false => host == *name,
            })
    }

    /// Refuses a request that is addressed to another host, or that a page of another origin sent. A request
    /// without a host passes: every browser sends one.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), ForeignRequest> {
        let mut hosts = parts.headers.get_all(HOST).iter();
        let header = hosts.next();
        if hosts.next().is_some() {
            return Err(ForeignRequest::InvalidHost);
        }
        let header = match header {
            Some(value) if !value.is_empty() => {
                let text = value.to_str().map_err(|_| ForeignRequest::InvalidHost)?;
                Some(self.check_authority(text)?)
            }
            _ => None,
        };
        // HTTP/2 names the host in `:authority`, and a proxy request in its target; both are parts of the URL.
        let target = match parts.uri.authority() {
            Some(authority) => Some(self.check_authority(authority.as_str())?),
            None => None,
        };
        let mut origins = parts.headers.get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return Ok(()) };
        let text = String::from_utf8_lossy(origin.as_bytes());
        let same = |own: &str| is_origin_of(&text, own);
        match target.or(header) {
            Some(own) if origins.next().is_none() && same(own) => Ok(()),
            _ => Err(ForeignRequest::Origin(text.into_owned())),
        }
    }

    fn check_authority<'a>(&self, text: &'a str) -> Result<&'a str, ForeignRequest> {
        let host = host_of(text).ok_or(ForeignRequest::InvalidHost)?;
        if self.contains(&host) { Ok(text) } else { Err(ForeignRequest::Host(host.into_owned())) }
    }
}

/// The host in `host:port`; `None` if the text is not of that form.
fn host_of(text: &str) -> Option<Cow<'_, str>> {
    // Nearly every request, without the general parser.
    if let Some(host) = text.split(':').next().filter(|host| *host == "localhost" || *host == "127.0.0.1")
        && text[host.len()..].strip_prefix(':').unwrap_or("0").bytes().all(|byte| byte.is_ascii_digit())
    {
        return Some(Cow::Borrowed(host));
    }
    let authority: Authority = text.parse().ok()?;
    let host = authority.host();
    let is_plain = !host.is_empty() && !text.contains('@');
    is_plain.then(|| Cow::Owned(host.to_owned()))
}

/// Whether `origin` is that of a page from `authority`, over http or https.
fn is_origin_of(origin: &str, authority: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| origin.strip_prefix(scheme).is_some_and(|host| host.eq_ignore_ascii_case(authority)))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn names(bind: &str, added: &[&str]) -> HostNames {
        let mut names = HostNames::of_bind(bind.parse().unwrap());
        added.iter().for_each(|name| names.allow(name));
        names
    }

    #[track_caller]
    fn check(names: &HostNames, uri: &str, headers: &[(&str, &str)]) -> Result<(), ForeignRequest> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        names.check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn an_account_on_loopback_answers_to_localhost_and_loopback_addresses() {
        let names = names("localhost", &[]);
        for host in [
            "localhost",
            "LocalHost:8081",
            "localhost.",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]:8081",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert_eq!(check(&names, "/", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "evillocalhost",
            "127.0.0.1.evil.example",
            "192.168.1.7",
            "0.0.0.0",
            "[::]",
            "2130706433",
            "0x7f.1",
            "127.1",
            "[fd00::1]",
        ] {
            assert!(matches!(check(&names, "/", &[("host", host)]), Err(ForeignRequest::Host(_))), "{host}");
        }
        for host in
            ["evil@localhost", "localhost@evil", "localhost:8081:1", "local host", "localhost/x", ":80"]
        {
            assert!(check(&names, "/", &[("host", host)]).is_err(), "{host}");
        }
        assert_eq!(check(&names, "/", &[]), Ok(()), "HTTP/1.0 needs no host");
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(check(&names, "/", &twice), Err(ForeignRequest::InvalidHost));
    }

    #[test]
    fn the_target_of_a_request_is_checked_as_its_host_is() {
        let names = names("localhost", &[]);
        assert_eq!(check(&names, "http://localhost:8081/dbs", &[]), Ok(()));
        assert_eq!(check(&names, "http://[::1]:8081/dbs", &[("host", "localhost")]), Ok(()));
        assert!(check(&names, "http://evil.example/dbs", &[("host", "localhost")]).is_err());
        assert!(check(&names, "http://localhost/dbs", &[("host", "evil.example")]).is_err());
        assert!(check(&names, "http://user@localhost/dbs", &[]).is_err());
    }

    #[test]
    fn an_address_of_the_machine_and_added_names_are_hosts_too() {
        let one = names("192.168.1.7", &["cosmos", ".documents.example.test"]);
        let all = names("0.0.0.0", &[]);
        for (host, by_one, by_all) in [
            ("192.168.1.7:8081", true, true),
            ("192.168.1.8:8081", false, true),
            ("[fd00::1]", false, true),
            ("Cosmos:8081", true, false),
            ("acct-eastus.documents.example.test", true, false),
            (".documents.example.test", false, false),
            ("documents.example.test", false, false),
            ("evil.example", false, false),
            ("localhost", true, true),
        ] {
            assert_eq!(check(&one, "/", &[("host", host)]).is_ok(), by_one, "{host}");
            assert_eq!(check(&all, "/", &[("host", host)]).is_ok(), by_all, "{host}");
        }
    }

    #[test]
    fn only_pages_of_the_same_host_and_port_may_send_requests() {
        let names = names("localhost", &[]);
        let with = |origin| check(&names, "/", &[("host", "localhost:1234"), ("origin", origin)]);
        assert_eq!(with("http://localhost:1234"), Ok(()));
        assert_eq!(with("https://LOCALHOST:1234"), Ok(()));
        for origin in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:3000",
            "http://localhost",
            "http://127.0.0.1:1234",
        ] {
            assert_eq!(with(origin), Err(ForeignRequest::Origin(origin.to_owned())), "{origin}");
        }
        let without_host = check(&names, "/", &[("origin", "http://localhost:1234")]);
        assert!(without_host.is_err(), "a page always has a host");
        let twice = [("host", "localhost"), ("origin", "http://localhost"), ("origin", "null")];
        assert!(check(&names, "/", &twice).is_err());
    }
}
