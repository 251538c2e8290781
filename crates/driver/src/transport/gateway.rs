//! Which gateway an endpoint is, and which protocol it speaks.
//!
//! The first answer tells: whoever agreed on HTTP/2 gets shards, whoever did not gets one client whose pool
//! is all that HTTP/1.1 needs. Until then an endpoint is taken to be like the others of the account, and the
//! very first one to speak HTTP/2: to give an HTTP/1.1 endpoint several clients costs nothing, to give an
//! HTTP/2 endpoint one connection costs most of its throughput.

use std::sync::atomic::{AtomicU8, Ordering};

use azure_core::http::Url;
use perihelion_http::trace::Protocol;
use protocol::account::{AccountProperties, Location};

use crate::routing::{Endpoint, Region};

/// How requests reach an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// HTTP/2: over shards.
    Sharded,
    /// HTTP/1.1: through one client, which has a connection for each request in flight.
    Plain,
}

/// How to reach an endpoint that was seen to speak `known`, the last other one having spoken `elsewhere`.
pub fn strategy(known: Option<Protocol>, elsewhere: Option<Protocol>) -> Strategy {
    match known.or(elsewhere) {
        Some(Protocol::Http1) => Strategy::Plain,
        Some(Protocol::Http2) | None => Strategy::Sharded,
        // A protocol of tomorrow will not have fewer streams than HTTP/2.
        Some(_) => Strategy::Sharded,
    }
}

/// A protocol that becomes known.
#[derive(Debug, Default)]
pub struct LearnedProtocol(AtomicU8);

const HTTP1: u8 = 1;
const HTTP2: u8 = 2;

impl LearnedProtocol {
    /// What is known so far.
    pub fn get(&self) -> Option<Protocol> {
        match self.0.load(Ordering::Relaxed) {
            HTTP1 => Some(Protocol::Http1),
            HTTP2 => Some(Protocol::Http2),
            _ => None,
        }
    }

    /// Takes in what an exchange said. A gateway that was replaced by one of another kind is noticed too.
    pub fn learn(&self, spoken: Option<Protocol>) {
        let code = match spoken {
            Some(Protocol::Http1) => HTTP1,
            Some(Protocol::Http2) => HTTP2,
            _ => return,
        };
        // Nearly always it is known, and then the cache line stays as it is.
        if self.0.load(Ordering::Relaxed) != code {
            self.0.store(code, Ordering::Relaxed);
        }
    }
}

/// Where the account has Gateway 2.0 endpoints. They speak RNTBD over HTTP/2, on ports of their own, and take
/// items only. The driver knows of them and shows them; it sends nothing there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gateway2 {
    /// Where items are written.
    pub writable: Vec<Endpoint>,
    /// Where items are read.
    pub readable: Vec<Endpoint>,
}

impl Gateway2 {
    /// Reads the locations from the account's properties; those that are not a name and a URL are left out.
    pub fn of(account: &AccountProperties) -> Gateway2 {
        let locations = |field: &str| {
            let entries = account.other.get(field).and_then(|value| value.as_array()).into_iter().flatten();
            entries.filter_map(|entry| endpoint(serde_json::from_value(entry.clone()).ok()?)).collect()
        };
        Gateway2 {
            writable: locations("thinClientWritableLocations"),
            readable: locations("thinClientReadableLocations"),
        }
    }

    /// Whether the account has any.
    pub fn is_offered(&self) -> bool {
        !self.readable.is_empty() || !self.writable.is_empty()
    }
}

fn endpoint(location: Location) -> Option<Endpoint> {
    if location.name.is_empty() {
        return None;
    }
    let url = Url::parse(&location.database_account_endpoint).ok()?;
    Some(Endpoint::regional(Region::new(&location.name), url))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_agreed_on_decides_and_the_neighbours_do_until_then() {
        use Protocol::{Http1, Http2};
        for (known, elsewhere, expected) in [
            (None, None, Strategy::Sharded),
            (None, Some(Http1), Strategy::Plain),
            (None, Some(Http2), Strategy::Sharded),
            (Some(Http1), Some(Http2), Strategy::Plain),
            (Some(Http2), Some(Http1), Strategy::Sharded),
        ] {
            assert_eq!(strategy(known, elsewhere), expected, "{known:?} {elsewhere:?}");
        }
    }

    #[test]
    fn a_protocol_is_learned_and_learned_anew() {
        let learned = LearnedProtocol::default();
        assert_eq!(learned.get(), None);
        learned.learn(None);
        assert_eq!(learned.get(), None, "a client that does not say teaches nothing");
        for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Http1] {
            learned.learn(Some(protocol));
            assert_eq!(learned.get(), Some(protocol));
        }
        learned.learn(None);
        assert_eq!(learned.get(), Some(Protocol::Http1));
    }

    #[test]
    fn gateway_2_locations_are_recognised_whatever_else_the_account_says() {
        let mut account = json!({ "_self": "", "id": "a", "_rid": "a.example" });
        let read = |account: &serde_json::Value| -> Gateway2 {
            Gateway2::of(&serde_json::from_value(account.clone()).expect("an account"))
        };
        assert!(!read(&account).is_offered());
        account["thinClientReadableLocations"] = json!([
            { "name": "West US", "databaseAccountEndpoint": "https://a-westus.example:10250/" },
            { "name": "", "databaseAccountEndpoint": "https://a.example:10250/" },
            { "name": "East US", "databaseAccountEndpoint": "not a URL" },
            "neither name nor URL",
        ]);
        account["thinClientWritableLocations"] = json!("not a list");
        let found = read(&account);
        assert!(found.is_offered() && found.writable.is_empty());
        let [west] = &found.readable[..] else { panic!("{found:?}") };
        assert_eq!((west.region(), west.authority()), (&Region::new("westus"), "a-westus.example:10250"));
    }
}
