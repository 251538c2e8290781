//! The success criteria of the pool's specification, in its order. Where it contradicts itself about the ends of the
//! queue, the front is the oldest: the newest is taken first, and the oldest is evicted.

use super::*;

#[test]
fn criterion_1_a_connection_that_is_checked_in_is_checked_out_and_counted() {
    let (time, pool) = (Time::start(), pool());
    assert!(pool.checkout(&origin("one"), time.at(0)).is_none(), "the pool is empty");
    pool.checkin(&origin("one"), Socket::new(7), time.at(0));
    let lease = pool.checkout(&origin("one"), time.at(1)).expect("it is idle");
    assert_eq!((lease.number, lease.is_reused()), (7, true));
    let metrics = pool.metrics(time.at(1)).total;
    assert_eq!((metrics.hits, metrics.misses, metrics.active, metrics.idle), (1, 1, 1, 0));
    assert_eq!(metrics.hit_rate(), Some(0.5));
    assert_adds_up(metrics, 2);
}

#[test]
fn criterion_2_checkout_returns_nothing_if_all_are_taken_or_stale() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    host.checkin(Socket::new(1), time.at(0));
    let taken = host.checkout(time.at(0)).expect("one is idle");
    assert!(host.checkout(time.at(0)).is_none(), "the only one is taken");
    taken.checkin(time.at(0));
    assert!(host.checkout(time.at(11)).is_none(), "the only one is stale");
    assert_adds_up(host.metrics(time.at(11)), 3);
}

#[test]
fn criterion_3_connections_are_pooled_by_scheme_host_and_port() {
    let (time, pool) = (Time::start(), pool());
    let origins = [
        Origin::new(Scheme::Https, "one", 443),
        Origin::new(Scheme::Http, "one", 443),
        Origin::new(Scheme::Https, "one", 444),
        Origin::new(Scheme::Https, "two", 443),
    ];
    for (number, origin) in (0..).zip(&origins) {
        pool.checkin(origin, Socket::new(number), time.at(0));
    }
    for (number, origin) in (0..).zip(&origins) {
        let upper = Origin::new(origin.scheme(), &origin.host().to_uppercase(), origin.port());
        assert_eq!(drain(&pool.host(&upper), time.at(0)), [number], "{origin}");
    }
}

#[test]
fn criterion_4_a_full_pool_evicts_the_oldest() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    let sockets: Vec<_> = (1..=5).map(Socket::new).collect();
    let states: Vec<_> = sockets.iter().map(|socket| Arc::clone(&socket.state)).collect();
    for socket in sockets {
        host.checkin(socket, time.at(0));
    }
    let closed: Vec<_> = states.iter().map(|state| state.is_dropped()).collect();
    assert_eq!(closed, [true, true, false, false, false]);
    assert_eq!(host.metrics(time.at(0)).evictions, 2);
    assert_eq!(drain(&host, time.at(0)), [5, 4, 3], "the newest comes first");
    assert_adds_up(host.metrics(time.at(0)), 4);
}

#[test]
fn criterion_5a_checkout_closes_expired_connections_first() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    let old = Socket::new(1);
    let state = Arc::clone(&old.state);
    host.checkin(old, time.at(0));
    host.checkin(Socket::new(2), time.at(5));
    assert_eq!(drain(&host, time.at(10)), [2, 1], "ten seconds are allowed");
    host.checkin(Socket::new(3), time.at(0));
    host.checkin(Socket::new(4), time.at(5));
    let found = host.checkout(time.at(11)).expect("one is fresh");
    assert_eq!(found.number, 4);
    assert!(state.is_dropped());
    let metrics = host.metrics(time.at(11));
    assert_eq!(
        (metrics.expirations, metrics.idle),
        (1, 0),
        "the expired one was closed, though it was checked in later"
    );
    assert_adds_up(metrics, 4);
}

#[test]
fn criterion_5b_cleanup_closes_the_expired_connections_of_all_hosts() {
    let (time, pool) = (Time::start(), pool());
    for (host, at) in [("one", 0), ("one", 20), ("two", 0), ("two", 0), ("three", 20)] {
        pool.checkin(&origin(host), Socket::new(0), time.at(at));
    }
    assert_eq!(pool.cleanup_stale(time.at(31)), 3);
    let metrics = pool.metrics(time.at(31));
    let left = |host: &str| metrics.host(&origin(host)).map(|host| host.idle);
    assert_eq!((left("one"), left("two"), left("three")), (Some(1), Some(0), Some(1)));
    assert_eq!(metrics.total.expirations, 3);
    assert_adds_up(metrics.total, 0);
}

#[test]
fn criterion_6_cleanup_closes_no_connection_that_is_fresh_or_in_use() {
    let (time, pool) = (Time::start(), pool());
    assert_eq!(pool.cleanup_stale(time.at(0)), 0, "an empty pool");
    pool.checkin(&origin("one"), Socket::new(1), time.at(0));
    let lease = pool.checkout(&origin("one"), time.at(0)).expect("it is idle");
    assert_eq!(pool.cleanup_stale(time.at(1_000)), 0, "a connection in use does not expire");
    lease.checkin(time.at(1_000));
    assert_eq!(pool.cleanup_stale(time.at(1_030)), 0);
    assert_eq!(pool.cleanup_stale(time.at(1_031)), 1);
}

#[test]
fn criterion_7_clear_closes_all_idle_connections_and_none_in_use() {
    let (time, pool) = (Time::start(), pool());
    assert_eq!(pool.clear(), 0, "an empty pool");
    for host in ["one", "one", "two"] {
        pool.checkin(&origin(host), Socket::new(1), time.at(0));
    }
    let in_use = pool.checkout(&origin("one"), time.at(0)).expect("it is idle");
    assert_eq!(pool.clear(), 2);
    assert!(!in_use.state.is_dropped());
    assert_eq!(pool.metrics(time.at(0)).total.idle, 0);
    in_use.checkin(time.at(0));
    assert_eq!(pool.metrics(time.at(0)).total.idle, 1, "it returns to the pool");
    assert_adds_up(pool.metrics(time.at(0)).total, 1);
}

#[test]
fn criterion_8_a_pooled_connection_has_its_stream_and_its_times() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    host.lease(Socket::new(1), time.at(1)).checkin(time.at(3));
    let lease = host.checkout(time.at(4)).expect("it is idle");
    let PooledConnection { stream, created_at, last_used_at } = lease.detach();
    assert_eq!((stream.number, created_at, last_used_at), (1, time.at(1), time.at(3)));
}
