//! DNS: from host names to socket addresses.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

/// A DNS resolver.
///
/// ```
/// use std::net::SocketAddr;
/// use perihelion_http::{Client, Resolve, Resolving};
///
/// /// Resolves every name to the loopback address.
/// #[derive(Debug)]
/// struct Loopback;
///
/// impl Resolve for Loopback {
///     fn resolve<'a>(&'a self, _host: &'a str, port: u16) -> Resolving<'a> {
///         Box::pin(async move { Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]) })
///     }
/// }
///
/// let client = Client::builder().resolver(Loopback).build()?;
/// # Ok::<(), perihelion_http::BuildError>(())
/// ```
pub trait Resolve: fmt::Debug + Send + Sync + 'static {
    /// Resolves `host` to addresses, the preferred one first. It is not called for a host that is an IP address.
    ///
    /// The future is dropped when the connect timeout passes.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a>;
}

/// The future of a resolver: the addresses of a host.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// The resolver of the operating system, called on a thread for blocking calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// Parses a host that is an IP address, which needs no resolver.
pub(crate) fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    host.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, port))
}

/// Orders addresses for happy eyeballs: IPv6 and IPv4 alternate, starting with the family of the first address, so that
/// an unreachable family costs one delay (RFC 8305, section 4).
pub(crate) fn interleave_families(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return addresses };
    let first_is_v6 = first.is_ipv6();
    let (preferred, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut interleaved = Vec::with_capacity(preferred.len() + other.len());
    let (mut preferred, mut other) = (preferred.into_iter(), other.into_iter());
    loop {
        match (preferred.next(), other.next()) {
            (None, None) => return interleaved,
            (first, second) => interleaved.extend(first.into_iter().chain(second)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_families_alternate() {
        let addresses = |list: &[&str]| -> Vec<SocketAddr> {
            list.iter().map(|address| address.parse().expect("an address")).collect()
        };
        let (a6, b6, c6) = ("[::1]:1", "[::2]:1", "[::3]:1");
        let (a4, b4) = ("1.0.0.1:1", "1.0.0.2:1");
        for (given, expected) in [
            (&[][..], &[][..]),
            (&[a4], &[a4]),
            (&[a6, b6, c6, a4, b4], &[a6, a4, b6, b4, c6]),
            (&[a4, a6, b6], &[a4, a6, b6]),
            (&[a4, b4, a6], &[a4, a6, b4]),
        ] {
            assert_eq!(interleave_families(addresses(given)), addresses(expected), "{given:?}");
        }
    }

    #[test]
    fn an_address_needs_no_resolver() {
        assert_eq!(literal("127.0.0.1", 80), Some("127.0.0.1:80".parse().expect("an address")));
        assert_eq!(literal("::1", 80), Some("[::1]:80".parse().expect("an address")));
        assert_eq!(literal("localhost", 80), None);
    }
}
