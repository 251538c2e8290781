//! The `tracing` events of the pool, with the field names that are documented.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use perihelion_http::pool::metrics::{ACTIVE, DISCARDS, EVICTIONS, EXPIRATIONS, HITS, IDLE, MISSES, TARGET};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::client::{client, get_traced};
use crate::server::{Script, Server, respond};

/// The fields of one event, by name.
#[derive(Clone, Debug, Default)]
struct EventFields(BTreeMap<String, String>);

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

/// A subscriber that collects the events of the pool.
#[derive(Clone, Default)]
struct PoolSubscriber(Arc<Mutex<Vec<EventFields>>>);

impl Subscriber for PoolSubscriber {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == TARGET
    }

    fn event(&self, event: &Event<'_>) {
        let mut events = EventFields::default();
        event.record(&mut events);
        self.0.lock().expect("no test panics here").push(events);
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
async fn each_checkout_and_checkin_is_an_event_with_the_host_and_its_counters() {
    let server = Server::plain(|_| Script::from(respond(2)));
    let (client, subscriber) = (client(), PoolSubscriber::default());
    // tracing caches at the first event of a callsite whether a subscriber wants it. While only one subscriber exists,
    // the thread of another test could cache that none does.
    let _another = tracing::Dispatch::new(PoolSubscriber::default());
    let guard = tracing::subscriber::set_default(subscriber.clone());
    for _ in 0..2 {
        assert!(get_traced(&client, &server.url("/")).await.1.is_ok());
    }
    drop(guard);
    let events = subscriber.0.lock().expect("no test panics here").clone();
    let summary: Vec<_> = events
        .iter()
        .map(|EventFields(fields)| {
            [HITS, MISSES, ACTIVE, IDLE].map(|name| fields[name].parse().unwrap_or(u64::MAX))
        })
        .collect();
    // A miss, a checkin, a hit, and another checkin.
    assert_eq!(summary, [[0, 1, 0, 0], [0, 1, 0, 1], [1, 1, 1, 0], [1, 1, 0, 1]]);
    for EventFields(fields) in &events {
        assert_eq!(fields["host"], server.url(""));
        assert!([EVICTIONS, EXPIRATIONS, DISCARDS].iter().all(|name| fields[*name] == "0"), "{fields:?}");
    }
}
