//! A pool with several hosts: overrides of the limits, and the removal of unused hosts.

use super::*;

#[test]
fn each_host_has_its_own_limits() {
    let limits = HostOverride { max_per_host: Some(1), max_idle_time: Some(Duration::from_secs(100)) };
    let config = PoolConfig::builder().max_per_host(2).for_host("ONE", limits);
    let (time, pool) = (Time::start(), ConnectionPool::new(config.build().expect("it is valid")));
    for host in ["one", "two"] {
        (0..3).for_each(|number| pool.checkin(&origin(host), Socket::new(number), time.at(0)));
    }
    let evicted = |host| pool.host(&origin(host)).metrics(time.at(0)).evictions;
    assert_eq!((evicted("one"), evicted("two")), (2, 1));
    assert_eq!(drain(&pool.host(&origin("one")), time.at(100)), [2]);
    assert_eq!(drain(&pool.host(&origin("two")), time.at(100)), [0; 0]);
}

#[test]
fn an_unused_host_is_removed_when_there_are_too_many_and_its_counters_stay() {
    let config = PoolConfig::builder().max_hosts(2).build().expect("it is valid");
    let (time, pool) = (Time::start(), ConnectionPool::new(config));
    let held = pool.host(&origin("held"));
    let old = Socket::new(1);
    let state = Arc::clone(&old.state);
    pool.checkin(&origin("one"), old, time.at(0));
    pool.checkin(&origin("two"), Socket::new(2), time.at(1));
    assert!(state.is_dropped(), "its connections are closed");
    let hosts: Vec<_> = pool.metrics(time.at(1)).hosts.into_iter().map(|(host, _)| host).collect();
    assert_eq!(hosts, [held.origin().clone(), origin("two")]);
    let total = pool.metrics(time.at(1)).total;
    assert_eq!((total.opened, total.discards, total.idle), (2, 1, 1));
    assert_adds_up(total, 0);
    // A lease keeps its host in use as well.
    let lease = pool.checkout(&origin("two"), time.at(1)).expect("it is idle");
    let third = pool.host(&origin("three"));
    assert_eq!(pool.metrics(time.at(1)).hosts.len(), 3, "all are in use, none is removed");
    drop((lease, third, held));
}

#[test]
fn the_host_that_was_unused_for_longest_is_removed_first() {
    let config = PoolConfig::builder().max_hosts(2).build().expect("it is valid");
    let (time, pool) = (Time::start(), ConnectionPool::new(config));
    pool.checkin(&origin("newer"), Socket::new(1), time.at(5));
    pool.checkin(&origin("older"), Socket::new(2), time.at(1));
    pool.checkin(&origin("third"), Socket::new(3), time.at(6));
    let hosts: Vec<_> = pool.metrics(time.at(6)).hosts.into_iter().map(|(host, _)| host).collect();
    assert_eq!(hosts, [origin("newer"), origin("third")]);
}
