//! The idle connections of one host, as a plain value: last in, first out, with the oldest evicted.
//!
//! The front is the oldest. Nothing here locks, closes, logs or reads a clock: connections to be closed are returned in
//! a [`Closing`], so that the caller can release its lock first.

use std::collections::VecDeque;
use std::time::Instant;

use super::config::Limits;
use super::metrics::HostMetrics;
use super::{Poolable, PooledConnection};

/// Connections that were removed from the list; dropping this closes them.
#[must_use = "dropped under the lock, it closes connections under the lock"]
#[derive(Debug)]
pub(super) struct Closing<C>(Vec<PooledConnection<C>>);

impl<C> Closing<C> {
    /// The number of connections to be closed.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// The idle connections of one host, and the counters of all its connections.
#[derive(Debug)]
pub(super) struct IdleList<C> {
    idle: VecDeque<PooledConnection<C>>,
    limits: Limits,
    /// All counters except `idle`, which is the length of the list.
    counts: HostMetrics,
}

impl<C: Poolable> IdleList<C> {
    pub(super) fn new(limits: Limits) -> IdleList<C> {
        IdleList { idle: VecDeque::new(), limits, counts: HostMetrics::default() }
    }

    /// Takes the connection that was used last and is open and not expired. Removes expired ones from the front, and from
    /// the back those that are expired or closed. Constant time, except for what is removed.
    pub(super) fn checkout(&mut self, now: Instant) -> (Option<PooledConnection<C>>, Closing<C>) {
        let mut closing = Vec::new();
        while self.idle.front().is_some_and(|oldest| is_expired(oldest, now, self.limits)) {
            self.counts.expirations += 1;
            closing.extend(self.idle.pop_front());
        }
        let found = loop {
            let Some(newest) = self.idle.pop_back() else { break None };
            if is_expired(&newest, now, self.limits) {
                self.counts.expirations += 1;
            } else if !newest.stream.is_open() {
                self.counts.discards += 1;
            } else {
                break Some(newest);
            }
            closing.push(newest);
        };
        match found {
            Some(_) => {
                self.counts.hits += 1;
                self.counts.active += 1;
            }
            None => self.counts.misses += 1,
        }
        (found, Closing(closing))
    }

    /// Counts a new connection, which is in use.
    pub(super) fn open(&mut self) {
        self.counts.opened += 1;
        self.counts.active += 1;
    }

    /// Adds a connection that was in use as the newest, if it is open. Evicts the oldest if the list is full. Returns
    /// the connection to be closed, if any.
    pub(super) fn checkin(&mut self, connection: PooledConnection<C>) -> Option<PooledConnection<C>> {
        self.end_use();
        if !connection.stream.is_open() {
            self.counts.discards += 1;
            return Some(connection);
        }
        let now = connection.last_used_at;
        let oldest = if self.idle.len() < self.limits.max_per_host { None } else { self.idle.pop_front() };
        match &oldest {
            Some(oldest) if is_expired(oldest, now, self.limits) => self.counts.expirations += 1,
            Some(_) => self.counts.evictions += 1,
            None => {}
        }
        self.idle.push_back(connection);
        debug_assert!(self.idle.len() <= self.limits.max_per_host, "an idle list outgrew its limit");
        oldest
    }

    /// Counts a connection in use that is closed or leaves the pool.
    pub(super) fn discard(&mut self) {
        self.end_use();
        self.counts.discards += 1;
    }

    /// Counts a connection from the list that turned out to be unusable: its checkout was no hit.
    pub(super) fn reject(&mut self) {
        self.discard();
        self.counts.hits = self.counts.hits.saturating_sub(1);
    }

    fn end_use(&mut self) {
        debug_assert!(self.counts.active > 0, "a connection was returned that was not in use");
        self.counts.active = self.counts.active.saturating_sub(1);
    }

    /// Removes all connections that have expired or are closed. Linear time.
    pub(super) fn cleanup_stale(&mut self, now: Instant) -> Closing<C> {
        let (limits, counts) = (self.limits, &mut self.counts);
        let mut closing = Vec::new();
        for connection in std::mem::take(&mut self.idle) {
            if is_expired(&connection, now, limits) {
                counts.expirations += 1;
            } else if !connection.stream.is_open() {
                counts.discards += 1;
            } else {
                self.idle.push_back(connection);
                continue;
            }
            closing.push(connection);
        }
        Closing(closing)
    }

    /// Removes all connections from the list.
    pub(super) fn clear(&mut self) -> Closing<C> {
        let all = Vec::from(std::mem::take(&mut self.idle));
        self.counts.discards += all.len() as u64;
        Closing(all)
    }

    /// The counters as of `now`. Connections that have expired by then count as expired, even if they are still in the
    /// list.
    pub(super) fn metrics(&self, now: Instant) -> HostMetrics {
        let expired = self.idle.iter().filter(|connection| is_expired(connection, now, self.limits)).count();
        HostMetrics {
            idle: (self.idle.len() - expired) as u64,
            expirations: self.counts.expirations + expired as u64,
            ..self.counts
        }
    }

    /// The final counters of an empty list.
    pub(super) fn totals(&self) -> HostMetrics {
        debug_assert!(self.idle.is_empty(), "idle connections would be missing from the counters");
        self.counts
    }

    /// When the newest connection was last used.
    pub(super) fn last_used_at(&self) -> Option<Instant> {
        self.idle.back().map(|newest| newest.last_used_at)
    }
}

/// Whether a connection has been idle for too long. `now` may be earlier than its last use: another thread may have
/// returned it after this one read the clock.
fn is_expired<C>(connection: &PooledConnection<C>, now: Instant, limits: Limits) -> bool {
    now.saturating_duration_since(connection.last_used_at) > limits.max_idle_time
}
