//! Which addresses a server listens on, and the host name in its URLs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The addresses that a server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bind {
    /// `127.0.0.1` and `::1`: both of the addresses `localhost` may resolve to.
    Loopback,
    /// One address; unspecified (`0.0.0.0`, `::`) means every interface.
    Address(IpAddr),
}

impl Bind {
    /// The address that must be available; otherwise the server does not start.
    pub fn primary(self) -> IpAddr {
        match self {
            Bind::Loopback => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Bind::Address(address) => address,
        }
    }

    /// The address that is used as well if it is available.
    pub fn secondary(self) -> Option<IpAddr> {
        const EVERY_IPV4: Bind = Bind::Address(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        match self {
            // Clients on this machine use `localhost`, which may resolve to `::1`.
            Bind::Loopback | EVERY_IPV4 => Some(IpAddr::V6(Ipv6Addr::LOCALHOST)),
            Bind::Address(_) => None,
        }
    }

    /// Whether only this machine can connect.
    pub fn is_loopback(self) -> bool {
        match self {
            Bind::Loopback => true,
            Bind::Address(address) => address.to_canonical().is_loopback(),
        }
    }

    /// The host name that a client on this machine uses in a URL.
    pub fn host(self) -> String {
        match self {
            Bind::Loopback => "localhost".to_owned(),
            Bind::Address(address) if address.is_loopback() || address.is_unspecified() => {
                "localhost".to_owned()
            }
            Bind::Address(IpAddr::V4(address)) => address.to_string(),
            Bind::Address(IpAddr::V6(address)) => format!("[{address}]"),
        }
    }
}

impl FromStr for Bind {
    type Err = String;

    fn from_str(text: &str) -> Result<Bind, String> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        match bare.parse::<IpAddr>() {
            _ if bare.eq_ignore_ascii_case("localhost") => Ok(Bind::Loopback),
            Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)) => Ok(Bind::Loopback),
            Ok(address) => Ok(Bind::Address(address)),
            Err(_) => Err(format!(
                "expected an IP address or localhost, found '{text}' (0.0.0.0 listens on every interface)"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bind_address_has_a_primary_a_secondary_and_a_host_name() {
        let cases = [
            ("localhost", "127.0.0.1", Some("::1"), "localhost"),
            ("LOCALHOST", "127.0.0.1", Some("::1"), "localhost"),
            ("127.0.0.1", "127.0.0.1", Some("::1"), "localhost"),
            ("0.0.0.0", "0.0.0.0", Some("::1"), "localhost"),
            ("::", "::", None, "localhost"),
            ("[::1]", "::1", None, "localhost"),
            ("192.168.1.7", "192.168.1.7", None, "192.168.1.7"),
            ("fd00::7", "fd00::7", None, "[fd00::7]"),
        ];
        for (text, primary, secondary, host) in cases {
            let bind: Bind = text.parse().unwrap();
            assert_eq!(bind.primary().to_string(), primary, "{text}");
            assert_eq!(bind.secondary().map(|address| address.to_string()).as_deref(), secondary, "{text}");
            assert_eq!(bind.host(), host, "{text}");
            assert_eq!(bind.is_loopback(), ["127.0.0.1", "::1"].contains(&primary), "{text}");
        }
    }

    #[test]
    fn a_host_name_other_than_localhost_is_refused_with_a_hint() {
        let error = "example.com".parse::<Bind>().unwrap_err();
        assert!(error.contains("example.com") && error.contains("0.0.0.0"), "{error}");
    }
}
