//! When a lease returns its connection to the pool, and when it closes it.

use super::*;

/// How a lease ends, and whether its connection is idle afterwards.
type Ending = (&'static str, fn(Lease<Socket>, Time), bool);

#[test]
fn only_a_lease_that_is_marked_idle_returns_its_connection() {
    let endings: [Ending; 7] = [
        ("dropped in the middle of a request", |lease, _| drop(lease), false),
        ("checked in", |lease, time| lease.checkin(time.at(1)), true),
        ("dropped when idle", |mut lease, time| lease.idle_since(time.at(1)), true),
        (
            "dropped in the middle of a second request",
            |mut lease, time| {
                lease.idle_since(time.at(1));
                lease.in_use();
            },
            false,
        ),
        (
            "discarded when idle",
            |mut lease, time| {
                lease.idle_since(time.at(1));
                lease.discard();
            },
            false,
        ),
        (
            "closed by the peer when idle",
            |mut lease, time| {
                lease.idle_since(time.at(1));
                lease.state.close_by_peer();
            },
            false,
        ),
        ("detached", |lease, _| drop(lease.detach()), false),
    ];
    for (what, end, is_idle) in endings {
        let (time, (_pool, host)) = (Time::start(), small_host());
        let lease = host.lease(Socket::new(1), time.at(0));
        assert_eq!((lease.is_reused(), host.metrics(time.at(0)).active), (false, 1), "{what}");
        let state = Arc::clone(&lease.state);
        end(lease, time);
        let metrics = host.metrics(time.at(1));
        assert_eq!((metrics.active, metrics.idle), (0, u64::from(is_idle)), "{what}");
        assert_eq!((state.is_dropped(), metrics.discards), (!is_idle, u64::from(!is_idle)), "{what}");
        assert_adds_up(metrics, 0);
    }
}

#[test]
fn a_connection_that_the_peer_has_closed_is_never_checked_out() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    let sockets: Vec<_> = (1..=3).map(Socket::new).collect();
    let states: Vec<_> = sockets.iter().map(|socket| Arc::clone(&socket.state)).collect();
    for socket in sockets {
        host.checkin(socket, time.at(0));
    }
    states[2].close_by_peer();
    states[0].close_by_peer();
    assert_eq!(drain(&host, time.at(0)), [2]);
    assert!(states.iter().all(|state| state.is_dropped()));
    assert_adds_up(host.metrics(time.at(0)), 2);
}

#[test]
fn a_rejected_connection_does_not_count_as_a_hit() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    host.checkin(Socket::new(1), time.at(0));
    let lease = host.checkout(time.at(0)).expect("it is idle");
    let state = Arc::clone(&lease.state);
    lease.reject();
    assert!(state.is_dropped());
    assert!(host.checkout(time.at(0)).is_none());
    host.lease(Socket::new(2), time.at(0)).reject();
    let metrics = host.metrics(time.at(0));
    assert_eq!((metrics.hits, metrics.misses, metrics.discards), (0, 1, 2));
    assert_adds_up(metrics, 1);
}

#[test]
fn cleanup_drops_connections_that_the_peer_has_closed() {
    let (time, (pool, host)) = (Time::start(), small_host());
    let socket = Socket::new(1);
    socket.state.close_by_peer();
    let state = Arc::clone(&socket.state);
    host.checkin(Socket::new(2), time.at(0));
    host.checkin(socket, time.at(0));
    assert!(state.is_dropped(), "a closed connection is not added");
    let lease = host.checkout(time.at(0)).expect("one is open");
    let state = Arc::clone(&lease.state);
    lease.checkin(time.at(0));
    state.close_by_peer();
    assert_eq!(pool.cleanup_stale(time.at(0)), 1);
    assert_eq!(host.metrics(time.at(0)).discards, 2);
}

#[test]
fn a_checkout_with_an_earlier_time_than_the_checkin_expires_nothing() {
    let (time, (_pool, host)) = (Time::start(), small_host());
    host.checkin(Socket::new(1), time.at(60));
    assert_eq!(drain(&host, time.at(0)), [1]);
}

#[test]
fn leases_outlive_the_pool_and_close_their_connections() {
    let (time, (pool, host)) = (Time::start(), small_host());
    let idle = Socket::new(1);
    let state = Arc::clone(&idle.state);
    host.checkin(idle, time.at(0));
    let lease = host.lease(Socket::new(2), time.at(0));
    let in_use = Arc::clone(&lease.state);
    drop((pool, host));
    assert!(!state.is_dropped(), "the lease keeps the pool of its host");
    lease.checkin(time.at(0));
    assert!(state.is_dropped() && in_use.is_dropped(), "the last reference to the pool is gone");
}
