//! Connections that wait to be used again.
//!
//! A [`ConnectionPool`] has a bucket per [`Authority`]. In each, the connection that was used last is the
//! first to be used again, so that those beyond the need grow old; the oldest makes room when there are too
//! many, and one that has waited for too long, or that the peer has closed, is never handed out.
//!
//! ```
//! use std::time::Instant;
//! use perihelion_http::authority::{Authority, Scheme};
//! use perihelion_http::pool::{ConnectionPool, PoolConfig, Pooled};
//!
//! struct Socket;
//! impl Pooled for Socket {
//!     fn is_open(&self) -> bool {
//!         true
//!     }
//! }
//!
//! # fn exchange(_: &Socket) {}
//! let pool = ConnectionPool::new(PoolConfig::default());
//! let host = pool.host(&Authority::new(Scheme::Https, "localhost", 8081));
//! let now = Instant::now();
//! // One that waits, or a new one.
//! let mut lease = host.checkout(now).unwrap_or_else(|| host.lease(Socket, now));
//! exchange(&lease);
//! // From here on it is returned when dropped. Before, it would have been closed.
//! lease.idle_since(Instant::now());
//! ```
//!
//! The pool is generic over what it keeps, opens nothing itself, never waits, and receives the time as an
//! argument. It has no task of its own: what has expired is closed when somebody comes across it, or by
//! [`cleanup_stale`](ConnectionPool::cleanup_stale). No lock is held across an await, nor while a
//! connection is closed.
//!
//! A checkout or checkin costs one short lock of that host's own, whatever the number of hosts and
//! connections.

mod bucket;
pub mod config;
mod host;
mod lease;
pub mod metrics;
pub mod observe;

use std::collections::HashMap;
use std::fmt;
use std::sync::PoisonError;
use std::time::Instant;

pub use config::{HostOverride, PoolConfig, PoolConfigBuilder, PoolConfigError};
pub use host::HostPool;
pub use lease::{Lease, Origin};
pub use metrics::{HostMetrics, PoolMetrics};

use crate::authority::{Authority, Key};
use crate::sync::{Arc, RwLock};

/// What can be pooled.
pub trait Pooled: Send + 'static {
    /// Whether the connection can be used, as far as is known here. Asked under the host's lock: it
    /// answers from memory and neither waits nor asks the system.
    fn is_open(&self) -> bool;
}

/// A connection with its times.
#[derive(Clone, Debug)]
pub struct PooledConnection<C> {
    /// The connection itself.
    pub stream: C,
    /// When it was opened.
    pub created_at: Instant,
    /// When it was last given back, or opened if it never was.
    pub last_used_at: Instant,
}

/// The connections that wait, for all hosts. Cheap to clone; clones share them.
pub struct ConnectionPool<C: Pooled>(Arc<Shared<C>>);

struct Shared<C: Pooled> {
    config: PoolConfig,
    hosts: RwLock<Hosts<C>>,
}

struct Hosts<C: Pooled> {
    by_authority: HashMap<Authority, HostPool<C>>,
    /// What happened to the connections of hosts that are no longer remembered.
    forgotten: HostMetrics,
}

impl<C: Pooled> ConnectionPool<C> {
    /// A pool without connections.
    pub fn new(config: PoolConfig) -> ConnectionPool<C> {
        let hosts = Hosts { by_authority: HashMap::new(), forgotten: HostMetrics::default() };
        ConnectionPool(Arc::new(Shared { config, hosts: RwLock::new(hosts) }))
    }

    /// What it was made with.
    pub fn config(&self) -> &PoolConfig {
        &self.0.config
    }

    /// The connections of one host. Builds no string unless the host is new.
    pub fn host(&self, authority: &(dyn Key + '_)) -> HostPool<C> {
        let known = self.read(|hosts| hosts.by_authority.get(authority).cloned());
        known.unwrap_or_else(|| self.meet(authority.parts().to_owned()))
    }

    /// The connection to this host that was used last; see [`HostPool::checkout`].
    #[must_use = "dropped, the connection is closed"]
    pub fn checkout(&self, authority: &(dyn Key + '_), now: Instant) -> Option<Lease<C>> {
        self.host(authority).checkout(now)
    }

    /// A connection to this host that was opened elsewhere, to be used later; see [`HostPool::checkin`].
    pub fn checkin(&self, authority: &(dyn Key + '_), stream: C, now: Instant) {
        self.host(authority).checkin(stream, now);
    }

    /// Closes all that have expired or were closed by the peer, and says how many that were. Looks at every
    /// connection that waits, one host after the other.
    pub fn cleanup_stale(&self, now: Instant) -> usize {
        self.all().iter().map(|host| host.cleanup_stale(now)).sum()
    }

    /// Closes all that wait, and says how many that were. There is a moment at which none waits for any
    /// host. Those in use are not touched, and return when they are done.
    pub fn clear(&self) -> usize {
        let all = self.all();
        let mut locked: Vec<_> = all.iter().map(HostPool::lock).collect();
        let closing: Vec<_> = locked.iter_mut().map(|bucket| bucket.clear()).collect();
        drop(locked);
        closing.iter().map(bucket::Closing::count).sum()
    }

    /// What happened to all connections, as of `now`.
    pub fn metrics(&self, now: Instant) -> PoolMetrics {
        let (all, mut total) = self.read(|hosts| (hosts.all(), hosts.forgotten));
        let mut hosts: Vec<_> =
            all.iter().map(|host| (host.authority().clone(), host.metrics(now))).collect();
        hosts.sort_by_cached_key(|(authority, _)| authority.to_string());
        hosts.iter().for_each(|(_, metrics)| total += *metrics);
        PoolMetrics { hosts, total }
    }

    /// Remembers a host. One that nobody uses is forgotten if they are too many.
    fn meet(&self, authority: Authority) -> HostPool<C> {
        let forgotten;
        let host = {
            let mut hosts = self.0.hosts.write().unwrap_or_else(PoisonError::into_inner);
            // Somebody else may have been faster.
            if let Some(known) = hosts.by_authority.get(&authority) {
                return known.clone();
            }
            forgotten = hosts.forget_beyond(self.0.config.max_hosts() - 1);
            let limits = self.0.config.limits_of(&authority);
            let host = HostPool::new(authority.clone(), limits);
            hosts.by_authority.insert(authority, host.clone());
            host
        };
        drop(forgotten);
        host
    }

    fn all(&self) -> Vec<HostPool<C>> {
        self.read(Hosts::all)
    }

    fn read<T>(&self, look: impl FnOnce(&Hosts<C>) -> T) -> T {
        look(&self.0.hosts.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<C: Pooled> Hosts<C> {
    fn all(&self) -> Vec<HostPool<C>> {
        self.by_authority.values().cloned().collect()
    }

    /// Forgets a host that nobody uses if there are more than so many, the one whose connections are oldest.
    /// Its connections are returned, to be closed outside of the lock. Looks at every host, when another is
    /// met.
    fn forget_beyond(&mut self, hosts: usize) -> Option<bucket::Closing<C>> {
        if self.by_authority.len() <= hosts {
            return None;
        }
        let unused = self.by_authority.values().filter(|host| host.is_unused());
        let oldest = unused.min_by_key(|host| host.last_used_at())?.authority().clone();
        let host = self.by_authority.remove(&oldest)?;
        let mut bucket = host.lock();
        let closing = bucket.clear();
        self.forgotten += bucket.totals();
        Some(closing)
    }
}

impl<C: Pooled> Clone for ConnectionPool<C> {
    fn clone(&self) -> ConnectionPool<C> {
        ConnectionPool(Arc::clone(&self.0))
    }
}

impl<C: Pooled> fmt::Debug for ConnectionPool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionPool").field("hosts", &self.all()).finish_non_exhaustive()
    }
}
