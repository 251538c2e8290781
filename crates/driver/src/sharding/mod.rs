//! Many HTTP/2 connections per endpoint.
//!
//! The service takes 20 requests at a time on one HTTP/2 connection. A *shard* is a client of its own, and
//! so a connection of its own, used for one endpoint; this module decides which shard a request goes to
//! ([`select`]), when a shard is given up ([`health`]), and how many there should be ([`scale`]). Those three
//! are pure. [`ShardedTransport`] holds the shards and the task that looks after them.

mod client_factory;
mod config;
pub mod health;
mod in_flight;
mod processor;
pub mod scale;
pub mod select;
mod shards;
mod sweep;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use azure_core::http::Url;

pub use self::client_factory::{ConnectAhead, HttpClientConfig, HttpClientFactory, NewClient, ProxyConfig};
pub use self::client_factory::{SharedClient, SharedClients};
pub use self::config::{BadSharding, LoadSpread, SERVICE_STREAMS_MAX, ShardingConfig};
pub use self::in_flight::{InFlight, Shard};
use self::shards::Common;
pub use self::shards::EndpointShards;
use self::sweep::Wake;
use crate::background::Background;
use crate::clock::Clock;

/// The shards of all endpoints, and the task that looks after them.
#[derive(Debug)]
pub struct ShardedTransport {
    inner: Arc<Inner>,
    /// Ends the task when the transport goes.
    background: Mutex<Option<Background>>,
}

struct Inner {
    common: Arc<Common>,
    clock: Clock,
    began: Instant,
    /// An endpoint's shards belong to whoever sends to it.
    endpoints: Mutex<Vec<Weak<EndpointShards>>>,
}

impl ShardedTransport {
    /// No endpoints yet. Starts nothing: the task begins with the first endpoint, from within a runtime.
    pub fn new(
        config: ShardingConfig,
        clients: SharedClients,
        clock: Clock,
    ) -> Result<ShardedTransport, BadSharding> {
        config.validate()?;
        let common = Common { config, clients, wake: Wake::default(), next_shard: AtomicU64::new(0) };
        let began = clock.now();
        let inner = Inner { common: Arc::new(common), clock, began, endpoints: Mutex::default() };
        Ok(ShardedTransport { inner: Arc::new(inner), background: Mutex::new(None) })
    }

    /// New shards for an endpoint; they are looked after for as long as the result lives.
    pub fn endpoint(&self, url: Url) -> Arc<EndpointShards> {
        let shards = Arc::new(EndpointShards::new(url, Arc::clone(&self.inner.common), self.now()));
        self.inner.lock_endpoints().push(Arc::downgrade(&shards));
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        background.get_or_insert_with(|| {
            let background = Background::new();
            background.spawn(sweep::run(Arc::downgrade(&self.inner)));
            background
        });
        shards
    }

    /// The clients the shards are made of.
    pub fn clients(&self) -> &SharedClients {
        &self.inner.common.clients
    }

    /// The time on which shards count.
    pub fn now(&self) -> Duration {
        self.inner.now()
    }

    /// The same for a moment that was read before.
    pub fn at(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.inner.began)
    }

    /// One look at everything, as the task takes it, with a given share of the processors in use.
    #[cfg(test)]
    pub(crate) async fn sweep(&self, processor: Option<f64>) {
        self.inner.sweep(processor).await;
    }
}

impl Inner {
    fn now(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.began)
    }

    fn endpoints(&self) -> Vec<Arc<EndpointShards>> {
        let mut endpoints = self.lock_endpoints();
        endpoints.retain(|shards| shards.strong_count() > 0);
        endpoints.iter().filter_map(Weak::upgrade).collect()
    }

    fn lock_endpoints(&self) -> std::sync::MutexGuard<'_, Vec<Weak<EndpointShards>>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("config", &self.common.config).finish_non_exhaustive()
    }
}
