//! The pool of one host: a lock around its [`IdleList`], and the leases of the connections in use.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

use super::config::Limits;
use super::idle_list::IdleList;
use super::metrics::{self, HostMetrics};
use super::{Poolable, PooledConnection};
use crate::origin::Origin;
use crate::sync::{Arc, Mutex, MutexGuard, ignore_poison};

/// The connections of one host. Cheap to clone; a caller that keeps one saves the lookup of the host.
///
/// Each call takes the lock of the host once, for a few instructions. No connection is closed under it.
pub struct HostPool<C: Poolable>(Arc<Shared<C>>);

struct Shared<C> {
    idle: Mutex<IdleList<C>>,
    origin: Origin,
}

impl<C: Poolable> HostPool<C> {
    pub(super) fn new(origin: Origin, limits: Limits) -> HostPool<C> {
        HostPool(Arc::new(Shared { idle: Mutex::new(IdleList::new(limits)), origin }))
    }

    /// The scheme, name and port of the host.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Takes the connection that was used last. Closes those that have expired or were closed by the peer. Returns
    /// `None` if no connection is left; the caller then opens one.
    #[must_use = "dropped, the connection is closed"]
    pub fn checkout(&self, now: Instant) -> Option<Lease<C>> {
        let (found, closing) = self.lock().checkout(now);
        drop(closing);
        let lease = found.map(|connection| Lease::new(connection, self.clone(), true));
        match &lease {
            Some(_) => metrics::trace_hit(self, now),
            None => metrics::trace_miss(self, now),
        }
        lease
    }

    /// Registers a connection that was opened just now, for immediate use.
    #[must_use = "dropped, the connection is closed"]
    pub fn lease(&self, stream: C, now: Instant) -> Lease<C> {
        self.lock().open();
        let connection = PooledConnection { stream, created_at: now, last_used_at: now };
        Lease::new(connection, self.clone(), false)
    }

    /// Registers a connection that was opened just now, for later use. It becomes the newest idle one.
    pub fn checkin(&self, stream: C, now: Instant) {
        self.lease(stream, now).checkin(now);
    }

    /// Closes the connections that have expired or were closed by the peer, and returns their number.
    pub fn cleanup_stale(&self, now: Instant) -> usize {
        let closing = self.lock().cleanup_stale(now);
        closing.count()
    }

    /// The counters of this host, as of `now`.
    pub fn metrics(&self, now: Instant) -> HostMetrics {
        self.lock().metrics(now)
    }

    /// Whether only the pool itself refers to this host: there is no lease and no other clone.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(super) fn last_used_at(&self) -> Option<Instant> {
        self.lock().last_used_at()
    }

    /// Locks the idle list. Only the pool may hold the locks of several hosts at once.
    pub(super) fn lock(&self) -> MutexGuard<'_, IdleList<C>> {
        // If `is_open` panics under the lock, the list is still valid; at most that connection is lost.
        ignore_poison(self.0.idle.lock())
    }
}

impl<C: Poolable> Clone for HostPool<C> {
    fn clone(&self) -> HostPool<C> {
        HostPool(Arc::clone(&self.0))
    }
}

impl<C: Poolable> fmt::Debug for HostPool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostPool").field(self.origin()).finish()
    }
}

/// A connection in use, which is closed or returned to the pool when its lease is dropped.
///
/// By default it is closed: a caller that is cancelled or fails in the middle of a request leaves the connection in an
/// unknown state. Once the response is complete, [`idle_since`](Lease::idle_since) says so, and dropping the lease
/// returns the connection to the pool.
pub struct Lease<C: Poolable> {
    /// Present until the lease is dropped or detached.
    connection: Option<PooledConnection<C>>,
    host: HostPool<C>,
    reused: bool,
    idle_since: Option<Instant>,
}

impl<C: Poolable> Lease<C> {
    fn new(connection: PooledConnection<C>, host: HostPool<C>, reused: bool) -> Lease<C> {
        Lease { connection: Some(connection), host, reused, idle_since: None }
    }

    /// Whether the connection comes from the pool, and was not opened for this use.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// The connection, with its times.
    pub fn connection(&self) -> &PooledConnection<C> {
        self.connection.as_ref().expect("a lease has its connection until it is dropped")
    }

    /// The pool of the host that the connection leads to.
    pub fn host(&self) -> &HostPool<C> {
        &self.host
    }

    /// Marks the response as complete at `now`: when dropped, the connection returns to the pool.
    pub fn idle_since(&mut self, now: Instant) {
        self.idle_since = Some(now);
    }

    /// Marks the connection as in use by another request: when dropped, it is closed.
    pub fn in_use(&mut self) {
        self.idle_since = None;
    }

    /// Returns the connection to the pool, as the newest idle one.
    pub fn checkin(mut self, now: Instant) {
        self.idle_since(now);
    }

    /// Closes the connection, even if it was marked as idle.
    pub fn discard(mut self) {
        self.in_use();
    }

    /// Closes a connection from the pool that turned out to be unusable before anything was sent on it. The checkout
    /// is then counted as no hit; the checkout that follows is counted instead.
    pub fn reject(mut self) {
        if !self.reused {
            return self.discard();
        }
        let connection = self.connection.take();
        self.host.lock().reject();
        drop(connection);
    }

    /// Takes the connection out of the pool for good.
    pub fn detach(mut self) -> PooledConnection<C> {
        let connection = self.connection.take().expect("a lease has its connection until it is dropped");
        self.host.lock().discard();
        connection
    }
}

impl<C: Poolable> Drop for Lease<C> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        match self.idle_since {
            Some(now) => {
                connection.last_used_at = now;
                let closing = self.host.lock().checkin(connection);
                drop(closing);
                metrics::trace_checkin(&self.host, now);
            }
            // Counted before the connection is closed, so that an observer of the close finds it counted.
            None => self.host.lock().discard(),
        }
    }
}

impl<C: Poolable> Deref for Lease<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection().stream
    }
}

impl<C: Poolable> DerefMut for Lease<C> {
    fn deref_mut(&mut self) -> &mut C {
        let connection = self.connection.as_mut();
        &mut connection.expect("a lease has its connection until it is dropped").stream
    }
}

impl<C: Poolable> fmt::Debug for Lease<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("host", self.host.origin())
            .field("reused", &self.reused)
            .field("idle_since", &self.idle_since)
            .finish_non_exhaustive()
    }
}
