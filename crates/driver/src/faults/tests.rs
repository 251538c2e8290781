//! Injected faults seen from above: what sharding and the transport make of them.

use crate::gateway::{GatewayOutcome, GatewayResult};
use perihelion_http::trace::Sent;
use std::time::Duration;

use protocol::status::Status;

use super::*;
use crate::clock::ManualTime;
use crate::gateway::testing::{Fixture, SECOND, create, read};
use crate::operation::OperationKind;
use crate::sharding::testing::Factory;
use crate::sharding::{EndpointShards, ShardingConfig};

/// A transport whose clients obey rules.
fn fixture(sharding: ShardingConfig) -> (Fixture, FaultInjector) {
    let time = ManualTime::new();
    let faults = FaultInjector::with_clock(7, time.clock());
    let factory = Factory::default();
    let clients = FaultInjectingHttpClientFactory::new(Arc::new(factory.clone()), faults.clone());
    (Fixture::wrapped(factory, Arc::new(clients), sharding, time), faults)
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

fn shard_ids(fixture: &Fixture) -> Vec<u64> {
    fixture.with_shards(|shards| shards.observations().iter().map(|shard| shard.shard).collect())
}

async fn sweep(fixture: &Fixture) {
    fixture.gateway.connections().sweep(None).await;
}

fn succeeded(result: &GatewayResult) -> bool {
    matches!(result.outcome, GatewayOutcome::Success(_))
}

#[tokio::test]
async fn shard_eviction_a_shard_that_fails_again_and_again_is_replaced_by_a_healthy_one() {
    let (fixture, faults) = fixture(clients(2, 8));
    faults.add(on_client(0));
    for _ in 0..4 {
        assert!(succeeded(&fixture.execute(&read(), SECOND).await));
    }
    fixture.time.advance(3 * SECOND);
    sweep(&fixture).await;
    assert_eq!(shard_ids(&fixture), [0, 1], "four failures are not five");
    assert!(succeeded(&fixture.execute(&read(), SECOND).await));
    assert_eq!(faults.hits("client 0"), Some(5));
    sweep(&fixture).await;
    assert_eq!(shard_ids(&fixture), [1, 2], "the fifth evicts it, and another takes its place");
    let next = fixture.execute(&read(), SECOND).await;
    assert!(succeeded(&next) && next.earlier.is_empty());
}

#[tokio::test]
async fn scale_up_under_failure_and_scale_down_after_recovery() {
    let (fixture, faults) = fixture(clients(1, 4));
    faults.add(FaultRule::new("all", broken_connection()));
    for round in 0..8 {
        for _ in 0..20 {
            assert!(!succeeded(&fixture.execute(&read(), SECOND).await));
        }
        fixture.time.advance(SECOND);
        sweep(&fixture).await;
        assert!(fixture.with_shards(EndpointShards::count) <= 4, "round {round}");
    }
    assert_eq!(fixture.with_shards(EndpointShards::count), 4, "up to the maximum and no further");
    let failing =
        fixture.with_shards(|shards| shards.observations().iter().all(|s| s.consecutive_failures >= 5));
    assert!(failing, "all of them are suspect, and none is evicted: it is not the connection");

    faults.clear();
    for _ in 0..20 {
        assert!(succeeded(&fixture.execute(&read(), SECOND).await));
        fixture.time.advance(10 * SECOND);
        sweep(&fixture).await;
    }
    assert_eq!(fixture.with_shards(EndpointShards::count), 1, "back to the minimum");
    assert_eq!(fixture.gateway.connections().client_count(), 1, "and the clients are closed");
}

#[tokio::test]
async fn per_shard_a_fault_on_one_shard_sends_requests_to_the_others_while_it_is_evicted() {
    let (fixture, faults) = fixture(clients(3, 8));
    faults.add(on_client(0));
    for _ in 0..5 {
        assert!(succeeded(&fixture.execute(&read(), SECOND).await));
    }
    // Suspect, though not evicted yet: nobody is sent there any more.
    for _ in 0..20 {
        let result = fixture.execute(&read(), SECOND).await;
        assert!(succeeded(&result) && result.earlier.is_empty());
        assert_ne!(result.last.expect("one request").shard, Some(0));
    }
    assert_eq!(faults.hits("client 0"), Some(5));
    fixture.time.advance(3 * SECOND);
    assert!(succeeded(&fixture.execute(&read(), SECOND).await));
    sweep(&fixture).await;
    assert!(!shard_ids(&fixture).contains(&0));
    assert_eq!(fixture.with_shards(EndpointShards::count), 3);
}

#[tokio::test]
async fn full_pipeline_injected_answers_and_failures_are_handled_like_real_ones() {
    let (fixture, faults) = fixture(clients(1, 8));
    faults.add(FaultRule::new("busy", Reaction::throttle(Duration::from_millis(100))).hits_max(2));
    let result = fixture.execute(&create(), 60 * SECOND).await;
    assert!(succeeded(&result));
    assert_eq!(result.earlier.len(), 2, "two waits, then the answer");
    assert!(fixture.time.elapsed() >= Duration::from_millis(200));

    faults.add(FaultRule::new("full", Reaction::answer(503)).hits_max(1));
    let result = fixture.execute(&read(), SECOND).await;
    let GatewayOutcome::ServiceError(answer) = &result.outcome else { panic!("{result:?}") };
    assert_eq!(answer.status, Status::SERVICE_UNAVAILABLE, "the operation decides about the region");
    assert!(succeeded(&fixture.execute(&read(), SECOND).await));
}

#[tokio::test]
async fn a_lost_answer_has_had_its_effect() {
    let (fixture, faults) = fixture(clients(1, 8));
    faults.add(FaultRule::new("lost", Reaction::from(Outcome::ConnectionErrorAfterSending)).hits_max(1));
    let result = fixture.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::NoResponse { sent: Sent::Sent, .. }), "{result:?}");
    assert_eq!(fixture.factory.requests().len(), 1, "the service got it, once");
    faults.add(FaultRule::new("lost", Reaction::from(Outcome::ConnectionErrorAfterSending)).hits_max(1));
    assert!(succeeded(&fixture.execute(&read(), SECOND).await), "a read is repeated");
    assert_eq!(fixture.factory.requests().len(), 3);
}

#[tokio::test]
async fn a_connection_that_fails_before_sending_reaches_nobody() {
    let (fixture, faults) = fixture(clients(1, 8));
    faults.add(FaultRule::new("unreachable", broken_connection()));
    let result = fixture.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::NoResponse { sent: Sent::NotSent, .. }), "{result:?}");
    assert_eq!(fixture.factory.requests().len(), 0);
    assert_eq!(faults.hits("unreachable"), Some(2), "once, and once over another shard");
}

#[tokio::test]
async fn a_delay_comes_before_the_service_and_a_timeout_ends_with_the_deadline() {
    let (fixture, faults) = fixture(clients(1, 8));
    faults.add(FaultRule::new("slow", Reaction::delay(2 * SECOND)).hits_max(1));
    assert!(succeeded(&fixture.execute(&read(), 60 * SECOND).await));
    assert_eq!(fixture.time.elapsed(), 2 * SECOND);
    faults.add(FaultRule::new("hole", Reaction::from(Outcome::Timeout)));
    let result = fixture.execute(&create(), 3 * SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::DeadlineExceeded { sent: Sent::Sent }), "{result:?}");
    assert_eq!(fixture.time.elapsed(), 5 * SECOND);
    assert_eq!(fixture.factory.requests().len(), 1);
    assert_eq!(fixture.in_flight(), 0);
}

#[tokio::test]
async fn a_shard_whose_requests_hang_is_replaced_and_the_requests_drain() {
    let (fixture, faults) = fixture(clients(1, 8));
    let hole = FaultRule::new("hole", Reaction::from(Outcome::Timeout));
    faults.add(hole.when(FaultCondition::any().client(0)));
    let operation = create();
    let mut hanging = Box::pin(fixture.attempt(&operation, 60 * SECOND));
    assert!(futures::poll!(hanging.as_mut()).is_pending());
    fixture.time.advance(9 * SECOND);
    sweep(&fixture).await;
    assert_eq!(shard_ids(&fixture), [0], "it may be slow");
    // The limit of one attempt is as long as the threshold, so this call is not polled any more here.
    fixture.time.advance(2 * SECOND);
    sweep(&fixture).await;
    assert_eq!(shard_ids(&fixture), [1], "nothing has come back for eleven seconds");
    assert!(succeeded(&fixture.execute(&create(), SECOND).await));
    assert_eq!(
        fixture.gateway.connections().client_count(),
        2,
        "the old client lives while a request needs it"
    );
    drop(hanging);
    assert_eq!(fixture.gateway.connections().client_count(), 1);
}

#[tokio::test]
async fn rules_can_be_about_a_region_and_a_container() {
    let (fixture, faults) = fixture(clients(1, 8));
    let here = FaultCondition::any().region("west us").container("d", "c").operation(OperationKind::Read);
    faults.add(FaultRule::new("elsewhere", Reaction::answer(500)).when(here.clone().region("East US")));
    faults.add(FaultRule::new("here", Reaction::answer(503)).when(here));
    let GatewayOutcome::ServiceError(answer) = fixture.execute(&read(), SECOND).await.outcome else {
        panic!("it is in West US")
    };
    assert_eq!(answer.status, Status(503));
    assert!(succeeded(&fixture.execute(&create(), SECOND).await), "only reads");
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
