//! Small worlds: a few threads that use one pool at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use shuttle::{check_pct, check_random, thread};

use crate::authority::{Authority, Scheme};
use crate::pool::{ConnectionPool, HostMetrics, HostPool, PoolConfig, Pooled};

const SCHEDULES: usize = 500;
const DEPTH: usize = 4;

/// A connection that only one may use at a time, and that tells when it is closed.
struct Socket {
    in_use: AtomicBool,
    open: Arc<AtomicBool>,
    alive: Arc<AtomicU64>,
}

impl Pooled for Socket {
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the threads of a world share.
#[derive(Clone)]
struct World {
    pool: ConnectionPool<Socket>,
    alive: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
    start: Instant,
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "an Instant can be had from the clock alone")]
    fn new(max_per_host: usize) -> World {
        let config = PoolConfig::builder().max_per_host(max_per_host).max_hosts(1);
        World {
            pool: ConnectionPool::new(config.build().expect("it makes sense")),
            alive: Arc::default(),
            asked: Arc::default(),
            start: Instant::now(),
        }
    }

    fn socket(&self, open: &Arc<AtomicBool>) -> Socket {
        self.alive.fetch_add(1, Ordering::Relaxed);
        Socket { in_use: AtomicBool::new(false), open: Arc::clone(open), alive: Arc::clone(&self.alive) }
    }

    /// One exchange on a connection that nobody else has.
    fn exchange(&self, host: &HostPool<Socket>, complete: bool) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut lease = match host.checkout(self.start) {
            Some(lease) => lease,
            None => host.lease(self.socket(&Arc::new(AtomicBool::new(true))), self.start),
        };
        assert!(!lease.in_use.swap(true, Ordering::Relaxed), "two have the same connection");
        thread::yield_now();
        assert!(lease.in_use.swap(false, Ordering::Relaxed), "two had the same connection");
        if complete {
            lease.idle_since(self.start);
        }
    }

    /// Nothing is in use, all is counted, and what the pool believes to be alive is.
    fn assert_at_rest(&self) {
        let total = self.pool.metrics(self.start).total;
        let HostMetrics { hits, misses, opened, active, idle, evictions, expirations, discards } = total;
        assert_eq!(active, 0, "{total:?}");
        assert_eq!(hits + misses, self.asked.load(Ordering::Relaxed), "{total:?}");
        assert_eq!(opened, idle + evictions + expirations + discards, "{total:?}");
        assert_eq!(self.alive.load(Ordering::Relaxed), idle, "{total:?}");
    }
}

fn host(name: &str) -> Authority {
    Authority::new(Scheme::Http, name, 80)
}

/// Random schedules find shallow mistakes, schedules with few well-placed switches the deep ones.
fn check(world: fn()) {
    check_random(world, SCHEDULES);
    check_pct(world, SCHEDULES, DEPTH);
}

#[test]
fn no_two_threads_have_one_connection_and_none_is_lost() {
    check(|| {
        let world = World::new(2);
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let world = world.clone();
                thread::spawn(move || {
                    // Looked up by each: they may meet the host at the same time.
                    let host = world.pool.host(&host("one"));
                    world.exchange(&host, true);
                    world.exchange(&host, number != 0);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        world.assert_at_rest();
        assert!(world.pool.metrics(world.start).total.idle <= 2, "the limit holds");
        assert_eq!(world.pool.metrics(world.start).hosts.len(), 1, "one host is one bucket");
    });
}

#[test]
fn clear_and_cleanup_race_with_those_who_use_the_pool() {
    check(|| {
        let world = World::new(1);
        let late = world.start + Duration::from_secs(3_600);
        let users = (0..2).map(|_| {
            let world = world.clone();
            thread::spawn(move || {
                let host = world.pool.host(&host("one"));
                world.exchange(&host, true);
                world.exchange(&host, true);
            })
        });
        let users: Vec<_> = users.collect();
        let cleaner = {
            let world = world.clone();
            thread::spawn(move || world.pool.clear() + world.pool.cleanup_stale(late))
        };
        users.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        cleaner.join().expect("no thread panics");
        world.assert_at_rest();
        world.pool.clear();
        assert_eq!(world.alive.load(Ordering::Relaxed), 0, "all are closed");
    });
}

#[test]
fn there_is_a_moment_at_which_a_clear_has_emptied_every_host() {
    check(|| {
        let world = World::new(2);
        let hosts = [world.pool.host(&host("one")), world.pool.host(&host("two"))];
        let user = {
            let (world, hosts) = (world.clone(), hosts.clone());
            thread::spawn(move || hosts.iter().for_each(|host| world.exchange(host, true)))
        };
        world.pool.clear();
        user.join().expect("no thread panics");
        let idle = hosts.map(|host| host.metrics(world.start).idle);
        // The second came after the first. If the first survived, the moment was before both.
        assert_ne!(idle, [1, 0], "the hosts were emptied at different moments");
        world.assert_at_rest();
    });
}

#[test]
fn a_peer_that_hangs_up_meanwhile_costs_one_connection_and_no_count() {
    check(|| {
        let world = World::new(2);
        let open = Arc::new(AtomicBool::new(true));
        let one = world.pool.host(&host("one"));
        one.checkin(world.socket(&open), world.start);
        let user = {
            let (world, one) = (world.clone(), one.clone());
            thread::spawn(move || world.exchange(&one, true))
        };
        let peer = thread::spawn(move || open.store(false, Ordering::Relaxed));
        peer.join().expect("no thread panics");
        user.join().expect("no thread panics");
        world.exchange(&one, true);
        world.assert_at_rest();
    });
}

#[test]
fn hosts_are_forgotten_only_while_nobody_uses_them() {
    check(|| {
        // One host is remembered; three are used.
        let world = World::new(1);
        let next = Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (world, next) = (world.clone(), Arc::clone(&next));
                thread::spawn(move || {
                    let name = ["one", "two", "three"][next.fetch_add(1, Ordering::Relaxed) as usize];
                    let host = world.pool.host(&host(name));
                    world.exchange(&host, true);
                    drop(host);
                    world.pool.metrics(world.start);
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        world.assert_at_rest();
    });
}
