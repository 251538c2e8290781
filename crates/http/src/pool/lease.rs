//! A connection in use, which returns or closes when its lease is dropped.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

use super::{HostPool, Pooled, PooledConnection};

/// Whether a connection had been used before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was opened for this use.
    New,
    /// It was waiting in the pool.
    Pooled,
}

/// A connection in use.
///
/// Dropped, it is closed: whoever drops it in the middle of an exchange, because the caller went away or
/// something failed, leaves it in a state nobody should use. Once the exchange is complete and the other
/// end owes nothing, [`idle_since`](Lease::idle_since) says so, and dropping it returns it to the pool.
pub struct Lease<C: Pooled> {
    /// There until it is dropped or detached.
    connection: Option<PooledConnection<C>>,
    host: HostPool<C>,
    origin: Origin,
    idle_since: Option<Instant>,
}

impl<C: Pooled> Lease<C> {
    pub(super) fn new(connection: PooledConnection<C>, host: HostPool<C>, origin: Origin) -> Lease<C> {
        Lease { connection: Some(connection), host, origin, idle_since: None }
    }

    /// Whether it was opened for this use.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The connection with its times.
    pub fn connection(&self) -> &PooledConnection<C> {
        self.connection.as_ref().expect("a lease has its connection until it is dropped")
    }

    /// The host whose connection it is.
    pub fn host(&self) -> &HostPool<C> {
        &self.host
    }

    /// The exchange was complete at `now`: when dropped, the connection returns to the pool.
    pub fn idle_since(&mut self, now: Instant) {
        self.idle_since = Some(now);
    }

    /// Another exchange has begun: when dropped, the connection is closed.
    pub fn in_use(&mut self) {
        self.idle_since = None;
    }

    /// Returns the connection to the pool, as the newest.
    pub fn checkin(mut self, now: Instant) {
        self.idle_since(now);
    }

    /// Closes the connection, whatever was said before.
    pub fn discard(mut self) {
        self.in_use();
    }

    /// Closes a connection from the pool that a closer look found to be of no use, before anything was sent
    /// on it. That it was handed out does not count as a hit; whoever asks for the next one is counted.
    pub fn reject(mut self) {
        match self.origin {
            Origin::Pooled => {
                let connection = self.connection.take();
                self.host.reject();
                drop(connection);
            }
            Origin::New => self.discard(),
        }
    }

    /// Takes the connection out of the pool's hands, for good.
    pub fn detach(mut self) -> PooledConnection<C> {
        let connection = self.connection.take().expect("a lease has its connection until it is dropped");
        self.host.discard();
        connection
    }
}

impl<C: Pooled> Drop for Lease<C> {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        match self.idle_since {
            Some(now) => {
                connection.last_used_at = now;
                self.host.put_back(connection);
            }
            // Counted first: whoever sees the connection closed finds it counted as such.
            None => self.host.discard(),
        }
    }
}

impl<C: Pooled> Deref for Lease<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.connection().stream
    }
}

impl<C: Pooled> DerefMut for Lease<C> {
    fn deref_mut(&mut self) -> &mut C {
        let connection = self.connection.as_mut();
        &mut connection.expect("a lease has its connection until it is dropped").stream
    }
}

impl<C: Pooled> fmt::Debug for Lease<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("host", self.host.authority())
            .field("origin", &self.origin)
            .field("idle_since", &self.idle_since)
            .finish_non_exhaustive()
    }
}
