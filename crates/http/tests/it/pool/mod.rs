//! The pool with plain values as connections, and time as a number.

mod criteria;
mod hosts;
mod lease;
mod model;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perihelion_http::origin::{Origin, Scheme};
use perihelion_http::pool::{
    ConnectionPool, HostMetrics, HostOverride, HostPool, Lease, PoolConfig, Poolable, PooledConnection,
};

/// A connection with a number, which knows whether it is open and whether it was dropped.
#[derive(Debug)]
struct Socket {
    number: u32,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the peer has closed the connection.
    closed_by_peer: AtomicBool,
    /// Whether this end has closed the connection.
    dropped: AtomicBool,
}

impl State {
    fn close_by_peer(&self) {
        self.closed_by_peer.store(true, Ordering::Relaxed);
    }

    fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Socket {
    fn new(number: u32) -> Socket {
        Socket { number, state: Arc::default() }
    }
}

impl Poolable for Socket {
    fn is_open(&self) -> bool {
        !self.state.closed_by_peer.load(Ordering::Relaxed)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        assert!(!self.state.dropped.swap(true, Ordering::Relaxed), "a connection is closed once");
    }
}

/// A clock that the test sets.
#[derive(Clone, Copy)]
struct Time(Instant);

impl Time {
    #[expect(clippy::disallowed_methods, reason = "only the clock makes an Instant")]
    fn start() -> Time {
        Time(Instant::now())
    }

    fn at(self, seconds: u64) -> Instant {
        self.0 + Duration::from_secs(seconds)
    }
}

fn origin(host: &str) -> Origin {
    Origin::new(Scheme::Https, host, 443)
}

fn pool() -> ConnectionPool<Socket> {
    ConnectionPool::new(PoolConfig::default())
}

/// A pool whose host keeps three connections for ten seconds.
fn small_host() -> (ConnectionPool<Socket>, HostPool<Socket>) {
    let config = PoolConfig::builder().max_per_host(3).max_idle_time(Duration::from_secs(10));
    let pool = ConnectionPool::new(config.build().expect("it is valid"));
    let host = pool.host(&origin("one"));
    (pool, host)
}

/// Takes out all that can be had, newest first, and closes them.
fn drain(host: &HostPool<Socket>, now: Instant) -> Vec<u32> {
    std::iter::from_fn(|| host.checkout(now).map(|lease| lease.number)).collect()
}

/// Checks the two sums that `pool::metrics` documents.
#[track_caller]
fn assert_adds_up(metrics: HostMetrics, checkouts: u64) {
    let HostMetrics { hits, misses, opened, active, idle, evictions, expirations, discards, .. } = metrics;
    assert_eq!(hits + misses, checkouts, "{metrics:?}");
    assert_eq!(opened, active + idle + evictions + expirations + discards, "{metrics:?}");
}
