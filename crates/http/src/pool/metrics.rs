//! What happened to the connections of each host, in numbers that add up.
//!
//! Two sums hold for every host and for all of them together, whenever they are looked at:
//!
//! - `hits + misses` is how often a connection was asked for;
//! - `opened = active + idle + evictions + expirations + discards`: no connection is lost.

use std::ops::AddAssign;

use crate::authority::Authority;

/// Connections that were used again: [`HostMetrics::hits`].
pub const HITS: &str = "connection.pool.hits";
/// Times that none was waiting: [`HostMetrics::misses`].
pub const MISSES: &str = "connection.pool.misses";
/// Connections in use: [`HostMetrics::active`].
pub const ACTIVE: &str = "connection.pool.active_connections.count";
/// Connections that wait: [`HostMetrics::idle`].
pub const IDLE: &str = "connection.pool.idle_bucket_size.count";
/// Connections that came into being: [`HostMetrics::opened`].
pub const OPENED: &str = "connection.pool.opened";
/// Connections that made room: [`HostMetrics::evictions`].
pub const EVICTIONS: &str = "connection.pool.evictions";
/// Connections that waited for too long: [`HostMetrics::expirations`].
pub const EXPIRATIONS: &str = "connection.pool.expirations";
/// Connections that could not be used again: [`HostMetrics::discards`].
pub const DISCARDS: &str = "connection.pool.discards";

/// What happened to the connections of one host since it was first met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMetrics {
    /// How often a connection was asked for and one was waiting.
    pub hits: u64,
    /// How often a connection was asked for and none was waiting.
    pub misses: u64,
    /// How many connections the pool was told of.
    pub opened: u64,
    /// How many are in use now.
    pub active: u64,
    /// How many wait now.
    pub idle: u64,
    /// How many were closed to make room for another.
    pub evictions: u64,
    /// How many were closed because they had waited for too long.
    pub expirations: u64,
    /// How many ended otherwise: closed by the peer, dropped in the middle of an exchange, cleared away, or
    /// taken out for good.
    pub discards: u64,
}

impl HostMetrics {
    /// The share of hits in all that was asked for; nothing while nothing was.
    pub fn hit_rate(&self) -> Option<f64> {
        let asked = self.hits + self.misses;
        (asked > 0).then(|| self.hits as f64 / asked as f64)
    }

    /// Each number under the name it is published by.
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

/// What happened to all connections of a pool.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PoolMetrics {
    /// Host by host, in the order of their names.
    pub hosts: Vec<(Authority, HostMetrics)>,
    /// All together, those included that have been forgotten since.
    pub total: HostMetrics,
}

impl PoolMetrics {
    /// What happened to the connections of one host.
    pub fn host(&self, authority: &Authority) -> Option<&HostMetrics> {
        self.hosts.iter().find(|(host, _)| host == authority).map(|(_, metrics)| metrics)
    }
}
