//! The idle list of one host, as a value: newest out first, oldest evicted, everything counted.
//!
//! The front is the oldest. Nothing here locks, closes, logs or reads a clock: what is to be closed is
//! handed out in a [`Closing`], so that whoever holds the lock can let go of it first.

use std::collections::VecDeque;
use std::time::Instant;

use super::config::Limits;
use super::metrics::HostMetrics;
use super::{Pooled, PooledConnection};

/// Connections that were taken out of the list to be closed, which dropping this does.
#[must_use = "dropped under the lock, it closes connections under the lock"]
#[derive(Debug)]
pub(super) struct Closing<C>(Vec<PooledConnection<C>>);

impl<C> Closing<C> {
    /// How many.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

/// The idle connections of one host, and what became of the others.
#[derive(Debug)]
pub(super) struct Bucket<C> {
    idle: VecDeque<PooledConnection<C>>,
    limits: Limits,
    /// All but `idle`, which is the length of the list.
    counts: HostMetrics,
}

impl<C: Pooled> Bucket<C> {
    pub(super) fn new(limits: Limits) -> Bucket<C> {
        Bucket { idle: VecDeque::new(), limits, counts: HostMetrics::default() }
    }

    /// The connection that was used last, if it is fresh and open. Those that are not are taken out on the
    /// way, and so are the oldest that have expired. Constant, but for what is taken out.
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

    /// A new connection comes into use.
    pub(super) fn open(&mut self) {
        self.counts.opened += 1;
        self.counts.active += 1;
    }

    /// A connection in use is put in line, as the newest, if it is open. The oldest makes room for it.
    /// What has to be closed, which is one connection at most, is returned.
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

    /// A connection in use goes elsewhere, or away.
    pub(super) fn discard(&mut self) {
        self.end_use();
        self.counts.discards += 1;
    }

    /// A connection that was handed out turned out to be of no use: it was no hit after all.
    pub(super) fn reject(&mut self) {
        self.discard();
        self.counts.hits = self.counts.hits.saturating_sub(1);
    }

    fn end_use(&mut self) {
        debug_assert!(self.counts.active > 0, "a connection came back that was never in use");
        self.counts.active = self.counts.active.saturating_sub(1);
    }

    /// Takes out all that have expired or are closed. Looks at each.
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

    /// Takes out all.
    pub(super) fn clear(&mut self) -> Closing<C> {
        let all = Vec::from(std::mem::take(&mut self.idle));
        self.counts.discards += all.len() as u64;
        Closing(all)
    }

    /// What happened, as of `now`: connections that have expired by then are counted as such, whether
    /// somebody has come across them or not.
    pub(super) fn metrics(&self, now: Instant) -> HostMetrics {
        let expired = self.idle.iter().filter(|waiting| is_expired(waiting, now, self.limits)).count();
        HostMetrics {
            idle: (self.idle.len() - expired) as u64,
            expirations: self.counts.expirations + expired as u64,
            ..self.counts
        }
    }

    /// What happened in all, to a bucket that is empty.
    pub(super) fn totals(&self) -> HostMetrics {
        debug_assert!(self.idle.is_empty(), "connections wait that would not be counted");
        self.counts
    }

    /// When the newest connection was last used.
    pub(super) fn last_used_at(&self) -> Option<Instant> {
        self.idle.back().map(|newest| newest.last_used_at)
    }
}

/// Whether a connection has been idle for too long. `now` may be before it was used: the clock was read,
/// and then somebody else was faster.
fn is_expired<C>(connection: &PooledConnection<C>, now: Instant, limits: Limits) -> bool {
    now.saturating_duration_since(connection.last_used_at) > limits.max_idle_time
}
