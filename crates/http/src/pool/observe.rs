//! What a subscriber of `tracing` is told about the pool.
//!
//! Events of the target [`TARGET`], at the level TRACE, each with the host and the numbers of
//! [`metrics`](super::metrics) that it changed. While nobody listens, an event costs one comparison with a
//! number that does not change: the numbers are not even gathered.

use std::time::Instant;

use super::{HostPool, Pooled};

/// Target of all events of the pool.
pub const TARGET: &str = "perihelion_http::pool";

macro_rules! tell {
    ($host:expr, $now:expr, $message:literal) => {
        if tracing::enabled!(target: TARGET, tracing::Level::TRACE) {
            let metrics = $host.metrics($now);
            tracing::trace!(
                target: TARGET,
                host = %$host.authority(),
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

/// One was waiting.
pub(super) fn hit<C: Pooled>(host: &HostPool<C>, now: Instant) {
    tell!(host, now, "connection reused");
}

/// None was waiting.
pub(super) fn miss<C: Pooled>(host: &HostPool<C>, now: Instant) {
    tell!(host, now, "no connection waiting");
}

/// One waits again.
pub(super) fn checkin<C: Pooled>(host: &HostPool<C>, now: Instant) {
    tell!(host, now, "connection returned");
}
