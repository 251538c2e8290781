//! The success criteria of the pool's specification, in its order. Where it contradicts itself about the
//! ends of the queue, the front is the oldest: newest out first, oldest evicted.

use super::*;

#[test]
fn criterion_1_the_pool_is_no_stub_what_goes_in_comes_out_and_is_counted() {
    let (time, pool) = (Time::start(), pool());
    assert!(pool.checkout(&authority("one"), time.at(0)).is_none(), "nothing is made up");
    pool.checkin(&authority("one"), Socket::new(7), time.at(0));
    let lease = pool.checkout(&authority("one"), time.at(1)).expect("it waits");
    assert_eq!((lease.number, lease.origin()), (7, Origin::Pooled));
    let metrics = pool.metrics(time.at(1)).total;
    assert_eq!((metrics.hits, metrics.misses, metrics.active, metrics.idle), (1, 1, 1, 0));
    assert_eq!(metrics.hit_rate(), Some(0.5));
    assert_adds_up(metrics, 2);
}

#[test]
fn criterion_2_checkout_is_empty_handed_when_all_are_taken_or_stale() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    host.checkin(Socket::new(1), time.at(0));
    let taken = host.checkout(time.at(0)).expect("one waits");
    assert!(host.checkout(time.at(0)).is_none(), "the only one is taken");
    taken.checkin(time.at(0));
    assert!(host.checkout(time.at(11)).is_none(), "the only one is stale");
    assert_adds_up(host.metrics(time.at(11)), 3);
}

#[test]
fn criterion_3_checkin_fills_the_bucket_of_scheme_host_and_port() {
    let (time, pool) = (Time::start(), pool());
    let places = [
        Authority::new(Scheme::Https, "one", 443),
        Authority::new(Scheme::Http, "one", 443),
        Authority::new(Scheme::Https, "one", 444),
        Authority::new(Scheme::Https, "two", 443),
    ];
    for (number, place) in (0..).zip(&places) {
        pool.checkin(place, Socket::new(number), time.at(0));
    }
    for (number, place) in (0..).zip(&places) {
        let upper = Authority::new(place.scheme(), &place.host().to_uppercase(), place.port());
        assert_eq!(drain(&pool.host(&upper), time.at(0)), [number], "{place}");
    }
}

#[test]
fn criterion_4_beyond_the_limit_the_oldest_is_evicted() {
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
fn criterion_5a_checkout_closes_what_has_expired_before_it_returns() {
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
    assert_eq!((metrics.expirations, metrics.idle), (1, 0), "the older one is gone although it came last");
    assert_adds_up(metrics, 4);
}

#[test]
fn criterion_5b_cleanup_closes_all_that_have_expired_in_all_buckets() {
    let (time, pool) = (Time::start(), pool());
    for (host, at) in [("one", 0), ("one", 20), ("two", 0), ("two", 0), ("three", 20)] {
        pool.checkin(&authority(host), Socket::new(0), time.at(at));
    }
    assert_eq!(pool.cleanup_stale(time.at(31)), 3);
    let metrics = pool.metrics(time.at(31));
    let left = |host: &str| metrics.host(&authority(host)).map(|host| host.idle);
    assert_eq!((left("one"), left("two"), left("three")), (Some(1), Some(0), Some(1)));
    assert_eq!(metrics.total.expirations, 3);
    assert_adds_up(metrics.total, 0);
}

#[test]
fn criterion_6_cleanup_can_be_called_at_any_time_and_closes_nothing_fresh() {
    let (time, pool) = (Time::start(), pool());
    assert_eq!(pool.cleanup_stale(time.at(0)), 0, "an empty pool");
    pool.checkin(&authority("one"), Socket::new(1), time.at(0));
    let lease = pool.checkout(&authority("one"), time.at(0)).expect("it waits");
    assert_eq!(pool.cleanup_stale(time.at(1_000)), 0, "what is in use is left alone, however long");
    lease.checkin(time.at(1_000));
    assert_eq!(pool.cleanup_stale(time.at(1_030)), 0);
    assert_eq!(pool.cleanup_stale(time.at(1_031)), 1);
}

#[test]
fn criterion_7_clear_closes_all_that_wait_and_touches_none_in_use() {
    let (time, pool) = (Time::start(), pool());
    assert_eq!(pool.clear(), 0, "an empty pool");
    for host in ["one", "one", "two"] {
        pool.checkin(&authority(host), Socket::new(1), time.at(0));
    }
    let in_use = pool.checkout(&authority("one"), time.at(0)).expect("it waits");
    assert_eq!(pool.clear(), 2);
    assert!(!in_use.state.is_dropped());
    assert_eq!(pool.metrics(time.at(0)).total.idle, 0);
    in_use.checkin(time.at(0));
    assert_eq!(pool.metrics(time.at(0)).total.idle, 1, "the pool goes on");
    assert_adds_up(pool.metrics(time.at(0)).total, 1);
}

#[test]
fn criterion_8_a_pooled_connection_shows_its_stream_and_its_times() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    host.lease(Socket::new(1), time.at(1)).checkin(time.at(3));
    let lease = host.checkout(time.at(4)).expect("it waits");
    let PooledConnection { stream, created_at, last_used_at } = lease.detach();
    assert_eq!((stream.number, created_at, last_used_at), (1, time.at(1), time.at(3)));
}
