//! Which HTTP version an endpoint speaks, and so whether its requests are spread over shards.
//!
//! The first response tells: an endpoint that agreed on HTTP/2 gets shards, any other one client, whose pool is
//! all that HTTP/1.1 needs. Until then an endpoint is assumed to speak the default protocol, which is what the
//! last endpoint spoke, and HTTP/2 for the very first: several clients for an HTTP/1.1 endpoint cost nothing,
//! one connection for an HTTP/2 endpoint costs most of its throughput.

use std::sync::atomic::{AtomicU8, Ordering};

use perihelion_http::trace::Protocol;

/// How the requests to an endpoint are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// HTTP/2: requests are spread over shards.
    Sharded,
    /// HTTP/1.1: through one client, which has a connection for each request in flight.
    Plain,
}

/// How to reach an endpoint that spoke `known`, where `default` is the protocol of endpoints not yet known.
pub(super) fn strategy(known: Option<Protocol>, default: Option<Protocol>) -> Strategy {
    match known.or(default) {
        Some(Protocol::Http1) => Strategy::Plain,
        Some(Protocol::Http2) | None => Strategy::Sharded,
        // A later version of HTTP will not have fewer streams than HTTP/2.
        Some(_) => Strategy::Sharded,
    }
}

/// The protocol of an endpoint, unknown until the first response.
#[derive(Debug, Default)]
pub(super) struct LearnedProtocol(AtomicU8);

const HTTP1: u8 = 1;
const HTTP2: u8 = 2;

impl LearnedProtocol {
    /// The protocol, if it is known.
    pub(super) fn get(&self) -> Option<Protocol> {
        match self.0.load(Ordering::Relaxed) {
            HTTP1 => Some(Protocol::Http1),
            HTTP2 => Some(Protocol::Http2),
            _ => None,
        }
    }

    /// Stores the protocol of a response. An endpoint whose gateway was replaced by one of another kind changes
    /// its protocol with the next response.
    pub(super) fn learn(&self, spoken: Option<Protocol>) {
        let code = match spoken {
            Some(Protocol::Http1) => HTTP1,
            Some(Protocol::Http2) => HTTP2,
            _ => return,
        };
        // Relaxed: a reader that sees the old value sends one request the old way. The value is stored only if
        // it changed, so that the cache line usually stays shared.
        if self.0.load(Ordering::Relaxed) != code {
            self.0.store(code, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_protocol_decides_and_the_default_one_until_then() {
        use Protocol::{Http1, Http2};
        for (known, default, expected) in [
            (None, None, Strategy::Sharded),
            (None, Some(Http1), Strategy::Plain),
            (None, Some(Http2), Strategy::Sharded),
            (Some(Http1), Some(Http2), Strategy::Plain),
            (Some(Http2), Some(Http1), Strategy::Sharded),
        ] {
            assert_eq!(strategy(known, default), expected, "{known:?} {default:?}");
        }
    }

    #[test]
    fn a_protocol_is_learned_and_may_change() {
        let learned = LearnedProtocol::default();
        assert_eq!(learned.get(), None);
        learned.learn(None);
        assert_eq!(learned.get(), None, "a client that reports nothing changes nothing");
        for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Http1] {
            learned.learn(Some(protocol));
            assert_eq!(learned.get(), Some(protocol));
        }
        learned.learn(None);
        assert_eq!(learned.get(), Some(Protocol::Http1));
    }
}
