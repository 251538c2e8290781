//! From names to addresses.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

/// Turns a host's name into addresses.
///
/// ```
/// use std::net::SocketAddr;
/// use perihelion_http::{Client, Resolve, Resolving};
///
/// /// Everything is on this machine.
/// #[derive(Debug)]
/// struct Here;
///
/// impl Resolve for Here {
///     fn resolve<'a>(&'a self, _host: &'a str, port: u16) -> Resolving<'a> {
///         Box::pin(async move { Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]) })
///     }
/// }
///
/// let client = Client::builder().resolver(Here).build()?;
/// # Ok::<(), perihelion_http::BuildError>(())
/// ```
pub trait Resolve: fmt::Debug + Send + Sync + 'static {
    /// The addresses of `host`, best first. Addresses written as such are not asked for.
    ///
    /// It is given the time a connection may take, and dropped when that is up.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a>;
}

/// A name that is being resolved.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Asks the system, on a thread where that may take its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// The address itself, if `host` is one.
pub(crate) fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    host.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, port))
}

/// The order in which to try addresses: families take turns, beginning with the first address's, so that one
/// family that leads nowhere costs one delay (RFC 8305, section 4).
pub(crate) fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return addresses };
    let first_is_v6 = first.is_ipv6();
    let (these, those): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut turns = Vec::with_capacity(these.len() + those.len());
    let (mut these, mut those) = (these.into_iter(), those.into_iter());
    loop {
        match (these.next(), those.next()) {
            (None, None) => return turns,
            (one, other) => turns.extend(one.into_iter().chain(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
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
            assert_eq!(in_turns(addresses(given)), addresses(expected), "{given:?}");
        }
    }

    #[test]
    fn an_address_needs_no_resolver() {
        assert_eq!(literal("127.0.0.1", 80), Some("127.0.0.1:80".parse().expect("an address")));
        assert_eq!(literal("::1", 80), Some("[::1]:80".parse().expect("an address")));
        assert_eq!(literal("localhost", 80), None);
    }
}
