//! The connections of one host: a lock around its [`Bucket`], held for moments only.

use std::fmt;
use std::sync::PoisonError;
use std::time::Instant;

use super::bucket::Bucket;
use super::config::Limits;
use super::lease::{Lease, Origin};
use super::metrics::HostMetrics;
use super::{Pooled, PooledConnection, observe};
use crate::authority::Authority;
use crate::sync::{Arc, Mutex, MutexGuard};

/// The connections of one host. Cheap to clone; whoever talks to a host often keeps one at hand, and asks
/// for connections without looking the host up.
///
/// Each call takes the host's lock once, for a few instructions. Nothing is closed under it.
pub struct HostPool<C: Pooled>(Arc<Host<C>>);

struct Host<C> {
    bucket: Mutex<Bucket<C>>,
    authority: Authority,
}

impl<C: Pooled> HostPool<C> {
    pub(super) fn new(authority: Authority, limits: Limits) -> HostPool<C> {
        HostPool(Arc::new(Host { bucket: Mutex::new(Bucket::new(limits)), authority }))
    }

    /// Whose connections these are.
    pub fn authority(&self) -> &Authority {
        &self.0.authority
    }

    /// The connection that was used last. Those that have expired or were closed by the peer are closed on
    /// the way; nothing if none is left, and then it is for the caller to open one.
    #[must_use = "dropped, the connection is closed"]
    pub fn checkout(&self, now: Instant) -> Option<Lease<C>> {
        let (found, closing) = self.lock().checkout(now);
        drop(closing);
        match found {
            Some(connection) => {
                let lease = Lease::new(connection, self.clone(), Origin::Pooled);
                observe::hit(self, now);
                Some(lease)
            }
            None => {
                observe::miss(self, now);
                None
            }
        }
    }

    /// A connection that was opened just now, to be used at once.
    #[must_use = "dropped, the connection is closed"]
    pub fn lease(&self, stream: C, now: Instant) -> Lease<C> {
        self.lock().open();
        let connection = PooledConnection { stream, created_at: now, last_used_at: now };
        Lease::new(connection, self.clone(), Origin::New)
    }

    /// A connection that was opened elsewhere, to be used later. It is the newest now.
    pub fn checkin(&self, stream: C, now: Instant) {
        self.lease(stream, now).checkin(now);
    }

    /// Closes what has expired or was closed by the peer, and says how many that were.
    pub fn cleanup_stale(&self, now: Instant) -> usize {
        let closing = self.lock().cleanup_stale(now);
        closing.count()
    }

    /// What happened to the connections of this host, as of `now`.
    pub fn metrics(&self, now: Instant) -> HostMetrics {
        self.lock().metrics(now)
    }

    pub(super) fn put_back(&self, connection: PooledConnection<C>) {
        let now = connection.last_used_at;
        let closing = self.lock().checkin(connection);
        drop(closing);
        observe::checkin(self, now);
    }

    pub(super) fn discard(&self) {
        self.lock().discard();
    }

    pub(super) fn reject(&self) {
        self.lock().reject();
    }

    /// Whether the pool alone remembers it: nobody has a lease or a handle.
    pub(super) fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(super) fn last_used_at(&self) -> Option<Instant> {
        self.lock().last_used_at()
    }

    /// For those who need the locks of several hosts at once, which only the pool may.
    pub(super) fn lock(&self) -> MutexGuard<'_, Bucket<C>> {
        // Nothing under the lock is left half done by a panic of `is_open`, but a connection may be lost.
        self.0.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C: Pooled> Clone for HostPool<C> {
    fn clone(&self) -> HostPool<C> {
        HostPool(Arc::clone(&self.0))
    }
}

impl<C: Pooled> fmt::Debug for HostPool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostPool").field(self.authority()).finish()
    }
}
