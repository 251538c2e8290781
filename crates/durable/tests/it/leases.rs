//! Slot leases in the container: heartbeats, expiry, takeover, fair shares.

#![expect(clippy::disallowed_methods, reason = "processes are killed, and locks expire, in real time")]

use std::collections::BTreeSet;
use std::time::Duration;

use perihelion_durable::{CosmosLeaseProvider, LeaseProvider};

use crate::factory;

const LEASE_TIME: Duration = Duration::from_millis(600);

/// Asks all members for their slots until each of 256 has one owner and the shares are as expected.
async fn converge(members: &[&CosmosLeaseProvider], expected: &[usize]) {
    let mut shares = Vec::new();
    for _ in 0..100 {
        shares.clear();
        for member in members {
            shares.push(member.acquire_slots(1).await);
        }
        let mut counts: Vec<usize> = shares.iter().map(Vec::len).collect();
        counts.sort_unstable();
        let all: BTreeSet<u8> = shares.iter().flatten().copied().collect();
        if counts == expected && all.len() == 256 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    panic!("the shares are {:?}", shares.iter().map(Vec::len).collect::<Vec<_>>());
}

#[tokio::test]
async fn slots_are_shared_taken_over_and_given_back() {
    let provider = factory::create_provider().await;
    let member = || CosmosLeaseProvider::with_lease_time(provider.container(), LEASE_TIME);
    let (a, b, c) = (member(), member(), member());
    converge(&[&a], &[256]).await;
    converge(&[&a, &b], &[128, 128]).await;
    converge(&[&a, &b, &c], &[85, 85, 86]).await;
    // One that is silent loses its slots once its lease has expired, and not before.
    let started = std::time::Instant::now();
    converge(&[&a, &b], &[128, 128]).await;
    assert!(started.elapsed() >= LEASE_TIME / 3, "{:?}", started.elapsed());
    // One that says goodbye loses them at once.
    b.release_slots(1).await;
    converge(&[&a], &[256]).await;
}

#[tokio::test]
async fn members_that_come_at_once_agree() {
    let provider = factory::create_provider().await;
    let members: Vec<_> =
        (0..8).map(|_| CosmosLeaseProvider::with_lease_time(provider.container(), LEASE_TIME)).collect();
    futures::future::join_all(members.iter().map(|member| member.acquire_slots(1))).await;
    converge(&members.iter().collect::<Vec<_>>(), &[32; 8]).await;
}
