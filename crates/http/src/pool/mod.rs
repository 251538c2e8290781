//! A pool of idle connections that can be reused, per host.
//!
//! A [`ConnectionPool`] has a list of idle connections per [`Origin`]. A checkout takes the connection that was used
//! last, so that surplus connections expire. A full list evicts the oldest. A connection that was idle for too long, or
//! that the peer has closed, is never handed out.
//!
//! ```
//! use std::time::Instant;
//! use perihelion_http::origin::{Origin, Scheme};
//! use perihelion_http::pool::{ConnectionPool, PoolConfig, Poolable};
//!
//! struct Socket;
//! impl Poolable for Socket {
//!     fn is_open(&self) -> bool {
//!         true
//!     }
//! }
//!
//! # fn send_and_receive(_: &Socket) {}
//! let pool = ConnectionPool::new(PoolConfig::default());
//! let host = pool.host(&Origin::new(Scheme::Https, "localhost", 8081));
//! let now = Instant::now();
//! // An idle connection, or a new one.
//! let mut lease = host.checkout(now).unwrap_or_else(|| host.lease(Socket, now));
//! send_and_receive(&lease);
//! // From here on, dropping the lease returns the connection. Before, it would have closed it.
//! lease.idle_since(Instant::now());
//! ```
//!
//! The pool is generic over the connection, opens none itself, never waits, and receives the time as an argument. It
//! has no task: expired connections are closed by the next checkout, or by
//! [`cleanup_stale`](ConnectionPool::cleanup_stale). No lock is held across an await, or while a connection is closed.
//!
//! A checkout or checkin takes one short lock, which belongs to the host, whatever the number of hosts and connections.

pub mod config;
mod host_pool;
mod idle_list;
pub mod metrics;

use std::collections::HashMap;
use std::fmt;
use std::time::Instant;

pub use config::{HostOverride, PoolConfig, PoolConfigBuilder, PoolConfigError};
pub use host_pool::{HostPool, Lease};
pub use metrics::{HostMetrics, PoolMetrics};

use crate::origin::{Origin, OriginKey};
use crate::sync::{Arc, RwLock, ignore_poison};

/// A connection that can be pooled.
pub trait Poolable: Send + 'static {
    /// Whether the connection is open, as far as this process knows. Called under the lock of the host, so it must
    /// neither wait nor make a system call.
    fn is_open(&self) -> bool;
}

/// A connection with its times.
#[derive(Clone, Debug)]
pub struct PooledConnection<C> {
    /// The connection that is pooled.
    pub stream: C,
    /// When the connection was opened.
    pub created_at: Instant,
    /// When the connection was last returned to the pool, or opened if it never was.
    pub last_used_at: Instant,
}

/// The idle connections of all hosts. Cheap to clone; clones share the connections.
pub struct ConnectionPool<C: Poolable>(Arc<Shared<C>>);

struct Shared<C: Poolable> {
    config: PoolConfig,
    hosts: RwLock<Hosts<C>>,
}

struct Hosts<C: Poolable> {
    by_origin: HashMap<Origin, HostPool<C>>,
    /// The sum of the counters of the hosts that were removed.
    removed: HostMetrics,
}

impl<C: Poolable> ConnectionPool<C> {
    /// Creates a pool without connections.
    pub fn new(config: PoolConfig) -> ConnectionPool<C> {
        let hosts = Hosts { by_origin: HashMap::new(), removed: HostMetrics::default() };
        ConnectionPool(Arc::new(Shared { config, hosts: RwLock::new(hosts) }))
    }

    /// The configuration that the pool was created with.
    pub fn config(&self) -> &PoolConfig {
        &self.0.config
    }

    /// The pool of one host. Allocates only if the host is new.
    pub fn host(&self, origin: &(dyn OriginKey + '_)) -> HostPool<C> {
        let found = self.read(|hosts| hosts.by_origin.get(origin).cloned());
        found.unwrap_or_else(|| self.insert_host(origin.parts().to_owned()))
    }

    /// Takes the connection to this host that was used last; see [`HostPool::checkout`].
    #[must_use = "dropped, the connection is closed"]
    pub fn checkout(&self, origin: &(dyn OriginKey + '_), now: Instant) -> Option<Lease<C>> {
        self.host(origin).checkout(now)
    }

    /// Registers a new connection to this host for later use; see [`HostPool::checkin`].
    pub fn checkin(&self, origin: &(dyn OriginKey + '_), stream: C, now: Instant) {
        self.host(origin).checkin(stream, now);
    }

    /// Closes all idle connections that have expired or were closed by the peer, and returns their number. Visits every
    /// idle connection, one host after the other.
    pub fn cleanup_stale(&self, now: Instant) -> usize {
        self.all().iter().map(|host| host.cleanup_stale(now)).sum()
    }

    /// Closes all idle connections, and returns their number. There is a moment at which no host has any. Connections in
    /// use are not affected, and return to the pool afterwards.
    pub fn clear(&self) -> usize {
        let all = self.all();
        let mut locked: Vec<_> = all.iter().map(HostPool::lock).collect();
        let closing: Vec<_> = locked.iter_mut().map(|idle| idle.clear()).collect();
        drop(locked);
        closing.iter().map(idle_list::Closing::count).sum()
    }

    /// The counters of all hosts, as of `now`.
    pub fn metrics(&self, now: Instant) -> PoolMetrics {
        let (all, mut total) = self.read(|hosts| (hosts.all(), hosts.removed));
        let mut hosts: Vec<_> = all.iter().map(|host| (host.origin().clone(), host.metrics(now))).collect();
        hosts.sort_by_cached_key(|(origin, _)| origin.to_string());
        hosts.iter().for_each(|(_, metrics)| total += *metrics);
        PoolMetrics { hosts, total }
    }

    /// Adds a host. If there are too many, removes one that is not used.
    fn insert_host(&self, origin: Origin) -> HostPool<C> {
        let closing;
        let host = {
            let mut hosts = ignore_poison(self.0.hosts.write());
            // Another thread may have added it since `host` looked.
            if let Some(found) = hosts.by_origin.get(&origin) {
                return found.clone();
            }
            closing = hosts.remove_unused_above(self.0.config.max_hosts() - 1);
            let limits = self.0.config.limits_for(&origin);
            let host = HostPool::new(origin.clone(), limits);
            hosts.by_origin.insert(origin, host.clone());
            host
        };
        drop(closing);
        host
    }

    fn all(&self) -> Vec<HostPool<C>> {
        self.read(Hosts::all)
    }

    fn read<T>(&self, read: impl FnOnce(&Hosts<C>) -> T) -> T {
        let hosts = ignore_poison(self.0.hosts.read());
        read(&hosts)
    }
}

impl<C: Poolable> Hosts<C> {
    fn all(&self) -> Vec<HostPool<C>> {
        self.by_origin.values().cloned().collect()
    }

    /// If there are more than `max` hosts, removes the unused one whose connections are oldest. Returns its connections,
    /// to be closed after the lock was released. Visits every host, when a new one is added.
    fn remove_unused_above(&mut self, max: usize) -> Option<idle_list::Closing<C>> {
        if self.by_origin.len() <= max {
            return None;
        }
        let unused = self.by_origin.values().filter(|host| host.is_unused());
        let oldest = unused.min_by_key(|host| host.last_used_at())?.origin().clone();
        let host = self.by_origin.remove(&oldest)?;
        let mut idle = host.lock();
        let closing = idle.clear();
        self.removed += idle.totals();
        Some(closing)
    }
}

impl<C: Poolable> Clone for ConnectionPool<C> {
    fn clone(&self) -> ConnectionPool<C> {
        ConnectionPool(Arc::clone(&self.0))
    }
}

impl<C: Poolable> fmt::Debug for ConnectionPool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").field("hosts", &self.all()).finish_non_exhaustive()
    }
}
