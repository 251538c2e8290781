//! Where clients come from: the trait that makes one `HttpClient` per shard, and the list that shares them
//! between endpoints.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use azure_core::http::{HttpClient, Url};
use futures::future::BoxFuture;

use crate::routing::Endpoint;
use crate::transport::carrier::{Carrier, Foreign};

/// Makes HTTP clients.
///
/// Called for every shard, mostly in the background but also by a request that finds all others full, so it
/// must be quick: what clients have in common, such as a TLS configuration with its roots, is made once and
/// shared between them. Each client has connections of its own.
pub trait HttpClientFactory: Send + Sync + fmt::Debug {
    /// A new client.
    fn create(&self, config: &HttpClientConfig) -> NewClient;

    /// Is told, with the feature `fault-injection`, which endpoint the next requests may go to: what is below
    /// sees URLs, and only here is it known which region is behind one.
    fn endpoint_in_use(&self, endpoint: &Endpoint) {
        let _ = endpoint;
    }
}

/// Opens a connection before the first request that needs it.
pub trait ConnectAhead: Send + Sync + fmt::Debug {
    /// Connects to `endpoint` and keeps the connection for the next request.
    fn connect<'a>(&'a self, endpoint: &'a Url) -> BoxFuture<'a, azure_core::Result<()>>;
}

/// What a factory makes: a client, and a way to warm it up if it has one.
#[derive(Clone, Debug)]
pub struct NewClient {
    carrier: Arc<dyn Carrier>,
    connect: Option<Arc<dyn ConnectAhead>>,
}

impl NewClient {
    /// Any client of `azure_core`, which connects with its first request.
    pub fn new(client: Arc<dyn HttpClient>) -> NewClient {
        NewClient::carrying(Arc::new(Foreign(client)))
    }

    /// A client that was written for the driver.
    pub fn carrying(carrier: Arc<dyn Carrier>) -> NewClient {
        NewClient { carrier, connect: None }
    }

    /// The same client, able to connect ahead.
    #[must_use]
    pub fn with_connect(self, connect: Arc<dyn ConnectAhead>) -> NewClient {
        NewClient { connect: Some(connect), ..self }
    }

    /// What it carries requests with.
    pub fn carrier(&self) -> &Arc<dyn Carrier> {
        &self.carrier
    }

    /// The same with another client in front, which hands on to this one.
    #[must_use]
    pub fn wrapped(self, wrap: impl FnOnce(Arc<dyn Carrier>) -> Arc<dyn Carrier>) -> NewClient {
        NewClient { carrier: wrap(self.carrier), ..self }
    }
}

impl From<Arc<dyn HttpClient>> for NewClient {
    fn from(client: Arc<dyn HttpClient>) -> NewClient {
        NewClient::new(client)
    }
}

/// What every client is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpClientConfig {
    /// To look up the name, connect and agree on TLS. 5 s by default.
    pub connect_timeout: Duration,
    /// For one request where the caller sets no deadline. 65 s by default.
    pub request_timeout: Duration,
    /// Idle HTTP/1.1 connections kept per host. 1000 by default: with HTTP/1.1 there is one per request in
    /// flight, and making them anew costs more than keeping them.
    pub pool_max_idle_per_host: usize,
    /// How long one is kept. 30 s by default.
    pub pool_idle_timeout: Duration,
    /// Time between probes of a silent connection, so that one that died is found before a request meets it.
    /// 30 s by default, `None` for never.
    pub tcp_keepalive: Option<Duration>,
    /// The proxy to go through.
    pub proxy: Option<ProxyConfig>,
    /// The local address to connect from.
    pub local_address: Option<IpAddr>,
    /// Take any certificate: for emulators with a certificate of their own, and nothing else.
    pub accept_invalid_certs: bool,
}

impl Default for HttpClientConfig {
    fn default() -> HttpClientConfig {
        HttpClientConfig {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(65),
            pool_max_idle_per_host: 1000,
            pool_idle_timeout: Duration::from_secs(30),
            tcp_keepalive: Some(Duration::from_secs(30)),
            proxy: None,
            local_address: None,
            accept_invalid_certs: false,
        }
    }
}

/// A proxy that is asked with `CONNECT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Where it is: `http://host:port`, with credentials if it wants any.
    pub url: Url,
}

/// A client as the endpoints share it.
#[derive(Debug)]
pub struct SharedClient {
    id: u64,
    made: NewClient,
    /// An endpoint gave it up; it goes on for others, but nobody else begins with it.
    retired: AtomicBool,
}

impl SharedClient {
    /// Its number, for diagnostics.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it carries requests with.
    pub fn carrier(&self) -> &dyn Carrier {
        &*self.made.carrier
    }

    /// Connects to `endpoint` if the client can do that ahead of a request.
    pub async fn connect_ahead(&self, endpoint: &Url) -> azure_core::Result<()> {
        match &self.made.connect {
            Some(connect) => connect.connect(endpoint).await,
            None => Ok(()),
        }
    }

    /// No endpoint begins with it from now on.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }
}

/// The clients of a transport. A client lives as long as some endpoint uses it.
///
/// Endpoints share clients, because a program may talk to many accounts, each in many regions, and a client
/// per connection would be most of what it holds.
#[derive(Debug)]
pub struct SharedClients {
    factory: Arc<dyn HttpClientFactory>,
    config: HttpClientConfig,
    next_id: AtomicU64,
    /// Oldest first; those that are gone are forgotten with the next look.
    known: Mutex<Vec<Weak<SharedClient>>>,
}

impl SharedClients {
    /// None yet.
    pub fn new(factory: Arc<dyn HttpClientFactory>, config: HttpClientConfig) -> SharedClients {
        SharedClients { factory, config, next_id: AtomicU64::new(0), known: Mutex::default() }
    }

    /// Tells the factory where requests go.
    #[cfg(feature = "fault-injection")]
    pub(crate) fn endpoint_in_use(&self, endpoint: &Endpoint) {
        self.factory.endpoint_in_use(endpoint);
    }

    /// What clients are made with.
    pub fn config(&self) -> &HttpClientConfig {
        &self.config
    }

    /// A client that `in_use` does not know: another endpoint's if there is one, otherwise a new one.
    ///
    /// Cost: the number of clients times the number in use; not on the way of a request.
    pub fn take(&self, in_use: impl Fn(u64) -> bool) -> Arc<SharedClient> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
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
            made: self.factory.create(&self.config),
            retired: AtomicBool::new(false),
        });
        known.push(Arc::downgrade(&client));
        client
    }

    /// How many clients live.
    pub fn count(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().filter(|client| client.strong_count() > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sharding::testing::Factory;

    #[test]
    fn a_client_is_shared_by_those_who_do_not_have_it_yet() {
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
