//! Many hosts: overrides, and those that are forgotten.

use super::*;

#[test]
fn each_host_obeys_its_own_limits() {
    let different = HostOverride { max_per_host: Some(1), max_idle_time: Some(Duration::from_secs(100)) };
    let config = PoolConfig::builder().max_per_host(2).for_host("ONE", different);
    let (time, pool) = (Time::start(), ConnectionPool::new(config.build().expect("it makes sense")));
    for host in ["one", "two"] {
        (0..3).for_each(|number| pool.checkin(&authority(host), Socket::new(number), time.at(0)));
    }
    let evicted = |host| pool.host(&authority(host)).metrics(time.at(0)).evictions;
    assert_eq!((evicted("one"), evicted("two")), (2, 1));
    assert_eq!(drain(&pool.host(&authority("one")), time.at(100)), [2]);
    assert_eq!(drain(&pool.host(&authority("two")), time.at(100)), [0; 0]);
}

#[test]
fn a_host_that_nobody_uses_is_forgotten_when_there_are_too_many_and_the_sums_stay() {
    let config = PoolConfig::builder().max_hosts(2).build().expect("it makes sense");
    let (time, pool) = (Time::start(), ConnectionPool::new(config));
    let held = pool.host(&authority("held"));
    let old = Socket::new(1);
    let state = Arc::clone(&old.state);
    pool.checkin(&authority("one"), old, time.at(0));
    pool.checkin(&authority("two"), Socket::new(2), time.at(1));
    assert!(state.is_dropped(), "its connections are closed");
    let known: Vec<_> = pool.metrics(time.at(1)).hosts.into_iter().map(|(host, _)| host).collect();
    assert_eq!(known, [held.authority().clone(), authority("two")]);
    let total = pool.metrics(time.at(1)).total;
    assert_eq!((total.opened, total.discards, total.idle), (2, 1, 1));
    assert_adds_up(total, 0);
    // A lease is a use as well.
    let lease = pool.checkout(&authority("two"), time.at(1)).expect("it waits");
    let third = pool.host(&authority("three"));
    assert_eq!(pool.metrics(time.at(1)).hosts.len(), 3, "all are in use, none is forgotten");
    drop((lease, third, held));
}

#[test]
fn of_those_nobody_uses_the_one_unused_for_longest_is_forgotten() {
    let config = PoolConfig::builder().max_hosts(2).build().expect("it makes sense");
    let (time, pool) = (Time::start(), ConnectionPool::new(config));
    pool.checkin(&authority("newer"), Socket::new(1), time.at(5));
    pool.checkin(&authority("older"), Socket::new(2), time.at(1));
    pool.checkin(&authority("third"), Socket::new(3), time.at(6));
    let known: Vec<_> = pool.metrics(time.at(6)).hosts.into_iter().map(|(host, _)| host).collect();
    assert_eq!(known, [authority("newer"), authority("third")]);
}
