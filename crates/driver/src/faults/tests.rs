//! Injected faults seen from above: what sharding and the transport make of them.

use std::time::Duration;

use protocol::status::Status;

use super::*;
use crate::clock::ManualTime;
use crate::operation::OperationKind;
use crate::sharding::testing::Factory;
use crate::sharding::{EndpointShards, ShardingConfig};
use crate::transport::outcome::{Sent, TransportOutcome, TransportResult};
use crate::transport::testing::{SECOND, World, create, read};

/// A transport whose clients obey rules.
fn world(sharding: ShardingConfig) -> (World, FaultInjector) {
    let time = ManualTime::new();
    let faults = FaultInjector::with_clock(7, time.clock());
    let factory = Factory::default();
    let clients = FaultInjectingHttpClientFactory::new(Arc::new(factory.clone()), faults.clone());
    (World::wrapped(factory, Arc::new(clients), sharding, time), faults)
}

fn clients(min: u32, max: u32) -> ShardingConfig {
    ShardingConfig {
        min_clients_per_endpoint: min,
        max_clients_per_endpoint: max,
        ..ShardingConfig::default()
    }
}

fn broken_connection() -> Reaction {
    Reaction::from(Outcome::ConnectionErrorBeforeSending)
}

fn on_client(number: u64) -> FaultRule {
    FaultRule::new(format!("client {number}"), broken_connection()).when(FaultCondition::any().client(number))
}

fn shard_ids(world: &World) -> Vec<u64> {
    world.with_shards(|shards| shards.observations().iter().map(|shard| shard.shard).collect())
}

async fn sweep(world: &World) {
    world.transport.adaptive().sweep(None).await;
}

fn succeeded(result: &TransportResult) -> bool {
    matches!(result.outcome, TransportOutcome::Success(_))
}

#[tokio::test]
async fn shard_eviction_a_shard_that_fails_again_and_again_is_replaced_by_a_healthy_one() {
    let (world, faults) = world(clients(2, 8));
    faults.add(on_client(0));
    for _ in 0..4 {
        assert!(succeeded(&world.execute(&read(), SECOND).await));
    }
    world.time.advance(3 * SECOND);
    sweep(&world).await;
    assert_eq!(shard_ids(&world), [0, 1], "four failures are not five");
    assert!(succeeded(&world.execute(&read(), SECOND).await));
    assert_eq!(faults.hits("client 0"), Some(5));
    sweep(&world).await;
    assert_eq!(shard_ids(&world), [1, 2], "the fifth evicts it, and another takes its place");
    let next = world.execute(&read(), SECOND).await;
    assert!(succeeded(&next) && next.earlier.is_empty());
}

#[tokio::test]
async fn scale_up_under_failure_and_scale_down_after_recovery() {
    let (world, faults) = world(clients(1, 4));
    faults.add(FaultRule::new("all", broken_connection()));
    for round in 0..8 {
        for _ in 0..20 {
            assert!(!succeeded(&world.execute(&read(), SECOND).await));
        }
        world.time.advance(SECOND);
        sweep(&world).await;
        assert!(world.with_shards(EndpointShards::count) <= 4, "round {round}");
    }
    assert_eq!(world.with_shards(EndpointShards::count), 4, "up to the maximum and no further");
    let failing =
        world.with_shards(|shards| shards.observations().iter().all(|s| s.consecutive_failures >= 5));
    assert!(failing, "all of them are suspect, and none is evicted: it is not the connection");

    faults.clear();
    for _ in 0..20 {
        assert!(succeeded(&world.execute(&read(), SECOND).await));
        world.time.advance(10 * SECOND);
        sweep(&world).await;
    }
    assert_eq!(world.with_shards(EndpointShards::count), 1, "back to the minimum");
    assert_eq!(world.transport.adaptive().clients(), 1, "and the clients are closed");
}

#[tokio::test]
async fn per_shard_a_fault_on_one_shard_sends_requests_to_the_others_while_it_is_evicted() {
    let (world, faults) = world(clients(3, 8));
    faults.add(on_client(0));
    for _ in 0..5 {
        assert!(succeeded(&world.execute(&read(), SECOND).await));
    }
    // Suspect, though not evicted yet: nobody is sent there any more.
    for _ in 0..20 {
        let result = world.execute(&read(), SECOND).await;
        assert!(succeeded(&result) && result.earlier.is_empty());
        assert_ne!(result.last.expect("one request").shard, Some(0));
    }
    assert_eq!(faults.hits("client 0"), Some(5));
    world.time.advance(3 * SECOND);
    assert!(succeeded(&world.execute(&read(), SECOND).await));
    sweep(&world).await;
    assert!(!shard_ids(&world).contains(&0));
    assert_eq!(world.with_shards(EndpointShards::count), 3);
}

#[tokio::test]
async fn full_pipeline_injected_answers_and_failures_are_handled_like_real_ones() {
    let (world, faults) = world(clients(1, 8));
    faults.add(FaultRule::new("busy", Reaction::throttle(Duration::from_millis(100))).hits_max(2));
    let result = world.execute(&create(), 60 * SECOND).await;
    assert!(succeeded(&result));
    assert_eq!(result.earlier.len(), 2, "two waits, then the answer");
    assert!(world.time.elapsed() >= Duration::from_millis(200));

    faults.add(FaultRule::new("full", Reaction::answer(503)).hits_max(1));
    let result = world.execute(&read(), SECOND).await;
    let TransportOutcome::ServiceError(answer) = &result.outcome else { panic!("{result:?}") };
    assert_eq!(answer.status, Status::SERVICE_UNAVAILABLE, "the operation decides about the region");
    assert!(succeeded(&world.execute(&read(), SECOND).await));
}

#[tokio::test]
async fn a_lost_answer_has_had_its_effect() {
    let (world, faults) = world(clients(1, 8));
    faults.add(FaultRule::new("lost", Reaction::from(Outcome::ConnectionErrorAfterSending)).hits_max(1));
    let result = world.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, TransportOutcome::NoAnswer { sent: Sent::Sent, .. }), "{result:?}");
    assert_eq!(world.factory.requests().len(), 1, "the service got it, once");
    faults.add(FaultRule::new("lost", Reaction::from(Outcome::ConnectionErrorAfterSending)).hits_max(1));
    assert!(succeeded(&world.execute(&read(), SECOND).await), "a read is repeated");
    assert_eq!(world.factory.requests().len(), 3);
}

#[tokio::test]
async fn a_connection_that_fails_before_sending_reaches_nobody() {
    let (world, faults) = world(clients(1, 8));
    faults.add(FaultRule::new("unreachable", broken_connection()));
    let result = world.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, TransportOutcome::NoAnswer { sent: Sent::NotSent, .. }), "{result:?}");
    assert_eq!(world.factory.requests().len(), 0);
    assert_eq!(faults.hits("unreachable"), Some(2), "once, and once over another shard");
}

#[tokio::test]
async fn a_delay_comes_before_the_service_and_a_timeout_ends_with_the_deadline() {
    let (world, faults) = world(clients(1, 8));
    faults.add(FaultRule::new("slow", Reaction::delay(2 * SECOND)).hits_max(1));
    assert!(succeeded(&world.execute(&read(), 60 * SECOND).await));
    assert_eq!(world.time.elapsed(), 2 * SECOND);
    faults.add(FaultRule::new("hole", Reaction::from(Outcome::Timeout)));
    let result = world.execute(&create(), 3 * SECOND).await;
    assert!(matches!(result.outcome, TransportOutcome::DeadlineExceeded { sent: Sent::Sent }), "{result:?}");
    assert_eq!(world.time.elapsed(), 5 * SECOND);
    assert_eq!(world.factory.requests().len(), 1);
    assert_eq!(world.in_flight(), 0);
}

#[tokio::test]
async fn a_shard_whose_requests_hang_is_replaced_and_the_requests_drain() {
    let (world, faults) = world(clients(1, 8));
    let hole = FaultRule::new("hole", Reaction::from(Outcome::Timeout));
    faults.add(hole.when(FaultCondition::any().client(0)));
    let operation = create();
    let mut hanging = Box::pin(world.attempt(&operation, 60 * SECOND));
    assert!(futures::poll!(hanging.as_mut()).is_pending());
    world.time.advance(9 * SECOND);
    sweep(&world).await;
    assert_eq!(shard_ids(&world), [0], "it may be slow");
    // The limit of one attempt is as long as the threshold, so this call is not polled any more here.
    world.time.advance(2 * SECOND);
    sweep(&world).await;
    assert_eq!(shard_ids(&world), [1], "nothing has come back for eleven seconds");
    assert!(succeeded(&world.execute(&create(), SECOND).await));
    assert_eq!(world.transport.adaptive().clients(), 2, "the old client lives while a request needs it");
    drop(hanging);
    assert_eq!(world.transport.adaptive().clients(), 1);
}

#[tokio::test]
async fn rules_can_be_about_a_region_and_a_container() {
    let (world, faults) = world(clients(1, 8));
    let here = FaultCondition::any().region("west us").container("d", "c").operation(OperationKind::Read);
    faults.add(FaultRule::new("elsewhere", Reaction::answer(500)).when(here.clone().region("East US")));
    faults.add(FaultRule::new("here", Reaction::answer(503)).when(here));
    let TransportOutcome::ServiceError(answer) = world.execute(&read(), SECOND).await.outcome else {
        panic!("it is in West US")
    };
    assert_eq!(answer.status, Status(503));
    assert!(succeeded(&world.execute(&create(), SECOND).await), "only reads");
    assert_eq!((faults.hits("elsewhere"), faults.hits("here")), (Some(0), Some(1)));
}

#[tokio::test]
async fn the_same_seed_draws_the_same_faults() {
    let outcomes = |seed| {
        let faults = FaultInjector::new(seed);
        (0..64).map(|_| faults.draw() < 0.5).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(1), outcomes(1));
    assert_ne!(outcomes(1), outcomes(2));
    let share = outcomes(3).iter().filter(|hit| **hit).count();
    assert!((16..=48).contains(&share), "{share} of 64");
}
