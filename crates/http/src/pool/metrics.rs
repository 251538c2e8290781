//! The counters of the pool, per host and in total, and the `tracing` events that publish them.
//!
//! Two sums hold at any time, for every host and in total:
//!
//! - `hits + misses` is the number of checkouts;
//! - `opened = active + idle + evictions + expirations + discards`: no connection is lost.
//!
//! Each checkout and checkin is an event of the target [`TARGET`] at the level TRACE, with the host and its counters.
//! Without a subscriber an event costs one comparison: the counters are not even read.

use std::ops::AddAssign;
use std::time::Instant;

use super::{HostPool, Poolable};

use crate::origin::Origin;

/// Checkouts that found an idle connection: [`HostMetrics::hits`].
pub const HITS: &str = "connection.pool.hits";
/// Checkouts that found no idle connection: [`HostMetrics::misses`].
pub const MISSES: &str = "connection.pool.misses";
/// Connections in use: [`HostMetrics::active`].
pub const ACTIVE: &str = "connection.pool.active_connections.count";
/// Connections that are idle: [`HostMetrics::idle`].
pub const IDLE: &str = "connection.pool.idle_bucket_size.count";
/// Connections that were opened: [`HostMetrics::opened`].
pub const OPENED: &str = "connection.pool.opened";
/// Connections that were evicted from a full pool: [`HostMetrics::evictions`].
pub const EVICTIONS: &str = "connection.pool.evictions";
/// Connections that were idle for too long: [`HostMetrics::expirations`].
pub const EXPIRATIONS: &str = "connection.pool.expirations";
/// Connections that could not be used again: [`HostMetrics::discards`].
pub const DISCARDS: &str = "connection.pool.discards";

/// The counters of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMetrics {
    /// The number of checkouts that found an idle connection.
    pub hits: u64,
    /// The number of checkouts that found no idle connection.
    pub misses: u64,
    /// The number of connections that were opened.
    pub opened: u64,
    /// The number of connections in use now.
    pub active: u64,
    /// The number of idle connections now.
    pub idle: u64,
    /// The number of connections that were closed to make room for a newer one.
    pub evictions: u64,
    /// The number of connections that were closed after they had been idle for too long.
    pub expirations: u64,
    /// The number of connections that left otherwise: closed by the peer, dropped in the middle of a request, cleared,
    /// or detached.
    pub discards: u64,
}

impl HostMetrics {
    /// The share of checkouts that were hits; `None` before the first checkout.
    pub fn hit_rate(&self) -> Option<f64> {
        let checkouts = self.hits + self.misses;
        (checkouts > 0).then(|| self.hits as f64 / checkouts as f64)
    }

    /// Each counter with the name that it is published under.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            (HITS, self.hits),
            (MISSES, self.misses),
            (ACTIVE, self.active),
            (IDLE, self.idle),
            (OPENED, self.opened),
            (EVICTIONS, self.evictions),
            (EXPIRATIONS, self.expirations),
            (DISCARDS, self.discards),
        ]
    }
}

impl AddAssign for HostMetrics {
    fn add_assign(&mut self, other: HostMetrics) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.opened += other.opened;
        self.active += other.active;
        self.idle += other.idle;
        self.evictions += other.evictions;
        self.expirations += other.expirations;
        self.discards += other.discards;
    }
}

/// The counters of all hosts of a pool.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PoolMetrics {
    /// The counters of each host, ordered by name.
    pub hosts: Vec<(Origin, HostMetrics)>,
    /// The sum over all hosts, including those that were removed since.
    pub total: HostMetrics,
}

impl PoolMetrics {
    /// The counters of one host.
    pub fn host(&self, origin: &Origin) -> Option<&HostMetrics> {
        self.hosts.iter().find(|(host, _)| host == origin).map(|(_, metrics)| metrics)
    }
}

/// The `tracing` target of all events of the pool.
pub const TARGET: &str = "perihelion_http::pool";

macro_rules! trace_counters {
    ($host:expr, $now:expr, $message:literal) => {
        if tracing::enabled!(target: TARGET, tracing::Level::TRACE) {
            let metrics = $host.metrics($now);
            tracing::trace!(
                target: TARGET,
                host = %$host.origin(),
                connection.pool.hits = metrics.hits,
                connection.pool.misses = metrics.misses,
                connection.pool.active_connections.count = metrics.active,
                connection.pool.idle_bucket_size.count = metrics.idle,
                connection.pool.evictions = metrics.evictions,
                connection.pool.expirations = metrics.expirations,
                connection.pool.discards = metrics.discards,
                $message
            );
        }
    };
}

/// Publishes a checkout that found an idle connection.
pub(super) fn trace_hit<C: Poolable>(host: &HostPool<C>, now: Instant) {
    trace_counters!(host, now, "connection reused");
}

/// Publishes a checkout that found no idle connection.
pub(super) fn trace_miss<C: Poolable>(host: &HostPool<C>, now: Instant) {
    trace_counters!(host, now, "no idle connection");
}

/// Publishes that a connection returned to the pool.
pub(super) fn trace_checkin<C: Poolable>(host: &HostPool<C>, now: Instant) {
    trace_counters!(host, now, "connection returned");
}
