//! What a subscriber of `tracing` is told about the pool, under the names it is documented by.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use perihelion_http::pool::metrics::{ACTIVE, DISCARDS, EVICTIONS, EXPIRATIONS, HITS, IDLE, MISSES};
use perihelion_http::pool::observe::TARGET;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::client::{client, observed};
use crate::server::{Script, Server, well};

/// One event: its fields by name.
#[derive(Clone, Debug, Default)]
struct Told(BTreeMap<String, String>);

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

/// Listens to the pool alone.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Told>>>);

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn event(&self, event: &Event<'_>) {
        let mut told = Told::default();
        event.record(&mut told);
        self.0.lock().expect("no test panics here").push(told);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn each_checkout_and_checkin_is_told_with_the_host_and_its_numbers() {
    let server = Server::plain(|_| Script::from(well(2)));
    let (client, listener) = (client(), Listener::default());
    // While there is but one subscriber, an event that another thread meets first is taken for unwanted.
    let _another = tracing::Dispatch::new(Listener::default());
    let guard = tracing::subscriber::set_default(listener.clone());
    for _ in 0..2 {
        assert!(observed(&client, &server.url("/")).await.1.is_ok());
    }
    drop(guard);
    let told = listener.0.lock().expect("no test panics here").clone();
    let summary: Vec<_> = told
        .iter()
        .map(|Told(fields)| [HITS, MISSES, ACTIVE, IDLE].map(|name| fields[name].parse().unwrap_or(u64::MAX)))
        .collect();
    // None was waiting; it came back; it was used again; it came back.
    assert_eq!(summary, [[0, 1, 0, 0], [0, 1, 0, 1], [1, 1, 1, 0], [1, 1, 0, 1]]);
    for Told(fields) in &told {
        assert_eq!(fields["host"], server.url(""));
        assert!([EVICTIONS, EXPIRATIONS, DISCARDS].iter().all(|name| fields[*name] == "0"), "{fields:?}");
    }
}
