//! A few threads that use one pool at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shuttle::{check_pct, check_random, thread};

use crate::origin::{Origin, Scheme};
use crate::pool::{ConnectionPool, HostMetrics, HostPool, PoolConfig, Poolable};

const SCHEDULES: usize = 500;
const DEPTH: usize = 4;

// shuttle runs one thread at a time and switches only at its own locks, so all atomics here are Relaxed.

/// A connection that detects a second user and counts how many are open.
struct Socket {
    in_use: AtomicBool,
    open: Arc<AtomicBool>,
    alive: Arc<AtomicU64>,
}

impl Poolable for Socket {
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The pool under test and what its threads share.
#[derive(Clone)]
struct Fixture {
    pool: ConnectionPool<Socket>,
    alive: Arc<AtomicU64>,
    checkouts: Arc<AtomicU64>,
    start: Instant,
}

impl Fixture {
    #[expect(clippy::disallowed_methods, reason = "only the clock makes an Instant")]
    fn new(max_per_host: usize) -> Fixture {
        let config = PoolConfig::builder().max_per_host(max_per_host).max_hosts(1);
        Fixture {
            pool: ConnectionPool::new(config.build().expect("it is valid")),
            alive: Arc::default(),
            checkouts: Arc::default(),
            start: Instant::now(),
        }
    }

    fn socket(&self, open: &Arc<AtomicBool>) -> Socket {
        self.alive.fetch_add(1, Ordering::Relaxed);
        Socket { in_use: AtomicBool::new(false), open: Arc::clone(open), alive: Arc::clone(&self.alive) }
    }

    /// Uses a connection for one request, and checks that no other thread uses it.
    fn request(&self, host: &HostPool<Socket>, complete: bool) {
        self.checkouts.fetch_add(1, Ordering::Relaxed);
        let mut lease = match host.checkout(self.start) {
            Some(lease) => lease,
            None => host.lease(self.socket(&Arc::new(AtomicBool::new(true))), self.start),
        };
        assert!(!lease.in_use.swap(true, Ordering::Relaxed), "two threads have the same connection");
        thread::yield_now();
        assert!(lease.in_use.swap(false, Ordering::Relaxed), "two threads had the same connection");
        if complete {
            lease.idle_since(self.start);
        }
    }

    /// Checks that no connection is in use, that the counters add up, and that the idle ones are the open ones.
    fn assert_consistent(&self) {
        let total = self.pool.metrics(self.start).total;
        let HostMetrics { hits, misses, opened, active, idle, evictions, expirations, discards } = total;
        assert_eq!(active, 0, "{total:?}");
        assert_eq!(hits + misses, self.checkouts.load(Ordering::Relaxed), "{total:?}");
        assert_eq!(opened, idle + evictions + expirations + discards, "{total:?}");
        assert_eq!(self.alive.load(Ordering::Relaxed), idle, "{total:?}");
    }
}

fn host(name: &str) -> Origin {
    Origin::new(Scheme::Http, name, 80)
}

/// Runs a test under random schedules, which find shallow bugs, and under ones with few context switches (PCT), which
/// find deep ones.
fn check(test: fn()) {
    check_random(test, SCHEDULES);
    check_pct(test, SCHEDULES, DEPTH);
}

#[test]
fn no_two_threads_have_one_connection_and_none_is_lost() {
    check(|| {
        let fixture = Fixture::new(2);
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let fixture = fixture.clone();
                thread::spawn(move || {
                    // Each thread looks the host up: they may add it at the same time.
                    let host = fixture.pool.host(&host("one"));
                    fixture.request(&host, true);
                    fixture.request(&host, number != 0);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        fixture.assert_consistent();
        assert!(fixture.pool.metrics(fixture.start).total.idle <= 2, "the limit holds");
        assert_eq!(fixture.pool.metrics(fixture.start).hosts.len(), 1, "the host was added once");
    });
}

#[test]
fn clear_and_cleanup_race_with_requests() {
    check(|| {
        let fixture = Fixture::new(1);
        let late = fixture.start + Duration::from_secs(3_600);
        let users = (0..2).map(|_| {
            let fixture = fixture.clone();
            thread::spawn(move || {
                let host = fixture.pool.host(&host("one"));
                fixture.request(&host, true);
                fixture.request(&host, true);
            })
        });
        let users: Vec<_> = users.collect();
        let cleaner = {
            let fixture = fixture.clone();
            thread::spawn(move || fixture.pool.clear() + fixture.pool.cleanup_stale(late))
        };
        users.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        cleaner.join().expect("no thread panics");
        fixture.assert_consistent();
        fixture.pool.clear();
        assert_eq!(fixture.alive.load(Ordering::Relaxed), 0, "all are closed");
    });
}

#[test]
fn clear_empties_all_hosts_at_one_moment() {
    check(|| {
        let fixture = Fixture::new(2);
        let hosts = [fixture.pool.host(&host("one")), fixture.pool.host(&host("two"))];
        let user = {
            let (fixture, hosts) = (fixture.clone(), hosts.clone());
            thread::spawn(move || hosts.iter().for_each(|host| fixture.request(host, true)))
        };
        fixture.pool.clear();
        user.join().expect("no thread panics");
        let idle = hosts.map(|host| host.metrics(fixture.start).idle);
        // The second host was used after the first. If the first kept its connection, the clear came before both.
        assert_ne!(idle, [1, 0], "the hosts were emptied at different moments");
        fixture.assert_consistent();
    });
}

#[test]
fn a_connection_that_the_peer_closes_meanwhile_is_lost_but_counted() {
    check(|| {
        let fixture = Fixture::new(2);
        let open = Arc::new(AtomicBool::new(true));
        let one = fixture.pool.host(&host("one"));
        one.checkin(fixture.socket(&open), fixture.start);
        let user = {
            let (fixture, one) = (fixture.clone(), one.clone());
            thread::spawn(move || fixture.request(&one, true))
        };
        let peer = thread::spawn(move || open.store(false, Ordering::Relaxed));
        peer.join().expect("no thread panics");
        user.join().expect("no thread panics");
        fixture.request(&one, true);
        fixture.assert_consistent();
    });
}

#[test]
fn only_unused_hosts_are_removed() {
    check(|| {
        // The pool keeps one host; three are used.
        let fixture = Fixture::new(1);
        let next = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (fixture, next) = (fixture.clone(), Arc::clone(&next));
                thread::spawn(move || {
                    let name = ["one", "two", "three"][next.fetch_add(1, Ordering::Relaxed) as usize];
                    let host = fixture.pool.host(&host(name));
                    fixture.request(&host, true);
                    drop(host);
                    fixture.pool.metrics(fixture.start);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        fixture.assert_consistent();
    });
}
