//! The transports of all shards, and which endpoints share them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

#[cfg(feature = "fault-injection")]
use crate::routing::Endpoint;
use crate::transport::{HttpClientConfig, Transport, TransportFactory};

/// A transport that several endpoints may share.
#[derive(Debug)]
pub struct SharedClient {
    id: u64,
    transport: Arc<dyn Transport>,
    /// Set when an endpoint evicted it: endpoints that use it continue, no other endpoint begins to.
    retired: AtomicBool,
}

impl SharedClient {
    /// The number of the client, for diagnostics.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The transport that sends its requests.
    pub fn transport(&self) -> &dyn Transport {
        &*self.transport
    }

    /// From now on no further endpoint is given this client.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }
}

/// All clients of a process. A client lives as long as some endpoint uses it.
///
/// Endpoints share clients, because a program may talk to many accounts, each in many regions, and a client
/// per connection would be most of what it holds.
#[derive(Debug)]
pub(super) struct SharedClients {
    factory: Arc<dyn TransportFactory>,
    config: HttpClientConfig,
    next_id: AtomicU64,
    /// Oldest first; clients that no endpoint uses are removed by the next `take`.
    known: Mutex<Vec<Weak<SharedClient>>>,
}

impl SharedClients {
    /// An empty list; clients are made by `factory` when they are needed.
    pub(super) fn new(factory: Arc<dyn TransportFactory>, config: HttpClientConfig) -> SharedClients {
        SharedClients { factory, config, next_id: AtomicU64::new(0), known: Mutex::default() }
    }

    /// Passes the endpoint of a request on to the factory.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn endpoint_in_use(&self, endpoint: &Endpoint) {
        self.factory.endpoint_in_use(endpoint);
    }

    /// The configuration that every client is made with.
    pub(super) fn config(&self) -> &HttpClientConfig {
        &self.config
    }

    /// A client for which `in_use` is false: another endpoint's if there is one, otherwise a new one.
    ///
    /// Cost: the number of clients times the number in use; rarely on the path of a request.
    pub(super) fn take(&self, in_use: impl Fn(u64) -> bool) -> Arc<SharedClient> {
        let mut known = crate::sync::lock(&self.known);
        known.retain(|client| client.strong_count() > 0);
        let shared = known
            .iter()
            .filter_map(Weak::upgrade)
            .find(|client| !client.is_retired() && !in_use(client.id()));
        if let Some(client) = shared {
            return client;
        }
        let client = Arc::new(SharedClient {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            transport: self.factory.create(&self.config),
            retired: AtomicBool::new(false),
        });
        known.push(Arc::downgrade(&client));
        client
    }

    /// How many clients are used by some endpoint.
    pub(super) fn count(&self) -> usize {
        let known = crate::sync::lock(&self.known);
        known.iter().filter(|client| client.strong_count() > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharding::testing::Factory;

    #[test]
    fn endpoints_share_clients_that_they_do_not_use_yet() {
        let factory = Factory::default();
        let clients = SharedClients::new(Arc::new(factory.clone()), HttpClientConfig::default());
        let first = clients.take(|_| false);
        let second = clients.take(|id| id == first.id());
        assert_eq!(factory.created(), 2, "an endpoint does not get the same one twice");
        let again = clients.take(|_| false);
        assert_eq!((again.id(), factory.created()), (first.id(), 2), "another endpoint gets the first");
        drop(again);
        assert_eq!(clients.take(|id| id == first.id()).id(), second.id());
    }

    #[test]
    fn a_retired_client_is_not_given_out_and_an_unused_one_is_gone() {
        let factory = Factory::default();
        let clients = SharedClients::new(Arc::new(factory.clone()), HttpClientConfig::default());
        let first = clients.take(|_| false);
        first.retire();
        let second = clients.take(|_| false);
        assert_ne!(first.id(), second.id());
        drop((first, second));
        assert_eq!(clients.count(), 0);
        clients.take(|_| false);
        assert_eq!(factory.created(), 3);
    }
}
