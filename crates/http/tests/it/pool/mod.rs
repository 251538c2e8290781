//! Every promise of the pool, on plain values and with time as a number.

mod criteria;
mod hosts;
mod lease;
mod model;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use perihelion_http::authority::{Authority, Scheme};
use perihelion_http::pool::{
    ConnectionPool, HostMetrics, HostOverride, HostPool, Lease, Origin, PoolConfig, Pooled, PooledConnection,
};

/// A connection that knows its number, and whether it is open and has been closed.
#[derive(Debug)]
struct Socket {
    number: u32,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The peer hung up.
    hung_up: AtomicBool,
    /// This end did.
    dropped: AtomicBool,
}

impl State {
    fn hang_up(&self) {
        self.hung_up.store(true, Ordering::Relaxed);
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

impl Pooled for Socket {
    fn is_open(&self) -> bool {
        !self.state.hung_up.load(Ordering::Relaxed)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        assert!(!self.state.dropped.swap(true, Ordering::Relaxed), "a connection is closed once");
    }
}

/// A clock that is moved by hand.
#[derive(Clone, Copy)]
struct Time(Instant);

impl Time {
    #[expect(clippy::disallowed_methods, reason = "an Instant can be had from the clock alone")]
    fn start() -> Time {
        Time(Instant::now())
    }

    fn at(self, seconds: u64) -> Instant {
        self.0 + Duration::from_secs(seconds)
    }
}

fn authority(host: &str) -> Authority {
    Authority::new(Scheme::Https, host, 443)
}

fn pool() -> ConnectionPool<Socket> {
    ConnectionPool::new(PoolConfig::default())
}

/// A pool whose host keeps three connections for ten seconds.
fn small_host() -> (ConnectionPool<Socket>, HostPool<Socket>) {
    let config = PoolConfig::builder().max_per_host(3).max_idle_time(Duration::from_secs(10));
    let pool = ConnectionPool::new(config.build().expect("it makes sense"));
    let host = pool.host(&authority("one"));
    (pool, host)
}

/// Takes out all that can be had, newest first, and closes them.
fn drain(host: &HostPool<Socket>, now: Instant) -> Vec<u32> {
    std::iter::from_fn(|| host.checkout(now).map(|lease| lease.number)).collect()
}

/// The two sums of the metrics' documentation.
#[track_caller]
fn assert_adds_up(metrics: HostMetrics, asked: u64) {
    let HostMetrics { hits, misses, opened, active, idle, evictions, expirations, discards, .. } = metrics;
    assert_eq!(hits + misses, asked, "{metrics:?}");
    assert_eq!(opened, active + idle + evictions + expirations + discards, "{metrics:?}");
}
