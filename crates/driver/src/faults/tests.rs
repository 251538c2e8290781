//! Injected faults seen from above: what sharding and the transport make of them.

use std::time::Duration;

use protocol::status::Status;

use super::*;
use crate::clock::ManualTime;
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

fn broken_connection() -> FaultRule {
    FaultRule::connection(ConnectionEffect::FailBeforeSending)
}

fn on_shard(number: u64) -> FaultRule {
    broken_connection().named(&format!("shard-{number}")).on_shard(number)
}

fn add(faults: &FaultInjector, rule: FaultRule) {
    faults.add(rule).expect("a rule that the driver can apply");
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
    add(&faults, on_shard(0));
    for _ in 0..4 {
        assert!(succeeded(&world.execute(&read(), SECOND).await));
    }
    world.time.advance(3 * SECOND);
    sweep(&world).await;
    assert_eq!(shard_ids(&world), [0, 1], "four failures are not five");
    assert!(succeeded(&world.execute(&read(), SECOND).await));
    assert_eq!(faults.hits("shard-0"), Some(5));
    sweep(&world).await;
    assert_eq!(shard_ids(&world), [1, 2], "the fifth evicts it, and another takes its place");
    let next = world.execute(&read(), SECOND).await;
    assert!(succeeded(&next) && next.earlier.is_empty());
}

#[tokio::test]
async fn scale_up_under_failure_and_scale_down_after_recovery() {
    let (world, faults) = world(clients(1, 4));
    add(&faults, broken_connection().named("all"));
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
    add(&faults, on_shard(0));
    for _ in 0..5 {
        assert!(succeeded(&world.execute(&read(), SECOND).await));
    }
    // Suspect, though not evicted yet: nobody is sent there any more.
    for _ in 0..20 {
        let result = world.execute(&read(), SECOND).await;
        assert!(succeeded(&result) && result.earlier.is_empty());
        assert_ne!(result.last.expect("one request").shard, Some(0));
    }
    assert_eq!(faults.hits("shard-0"), Some(5));
    world.time.advance(3 * SECOND);
    assert!(succeeded(&world.execute(&read(), SECOND).await));
    sweep(&world).await;
    assert!(!shard_ids(&world).contains(&0));
    assert_eq!(world.with_shards(EndpointShards::count), 3);
}

#[tokio::test]
async fn full_pipeline_injected_answers_and_failures_are_handled_like_real_ones() {
    let (world, faults) = world(clients(1, 8));
    add(&faults, FaultRule::throttle(Duration::from_millis(100)).named("busy").times(2));
    let result = world.execute(&create(), 60 * SECOND).await;
    assert!(succeeded(&result));
    assert_eq!(result.earlier.len(), 2, "two waits, then the answer");
    assert!(world.time.elapsed() >= Duration::from_millis(200));

    add(&faults, FaultRule::status(503, 0).named("full").times(1));
    let result = world.execute(&read(), SECOND).await;
    let TransportOutcome::ServiceError(answer) = &result.outcome else { panic!("{result:?}") };
    assert_eq!(answer.status, Status::SERVICE_UNAVAILABLE, "the operation decides about the region");
    assert!(succeeded(&world.execute(&read(), SECOND).await));
}

#[tokio::test]
async fn a_lost_answer_has_had_its_effect() {
    let (world, faults) = world(clients(1, 8));
    add(&faults, FaultRule::connection(ConnectionEffect::CloseAfter).named("lost").times(1));
    let result = world.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, TransportOutcome::NoAnswer { sent: Sent::Sent, .. }), "{result:?}");
    assert_eq!(world.factory.requests().len(), 1, "the service got it, once");
    add(&faults, FaultRule::connection(ConnectionEffect::CloseAfter).named("lost").times(1));
    assert!(succeeded(&world.execute(&read(), SECOND).await), "a read is repeated");
    assert_eq!(world.factory.requests().len(), 3);
}

#[tokio::test]
async fn a_connection_that_fails_before_sending_reaches_nobody() {
    let (world, faults) = world(clients(1, 8));
    add(&faults, broken_connection().named("unreachable"));
    let result = world.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, TransportOutcome::NoAnswer { sent: Sent::NotSent, .. }), "{result:?}");
    assert_eq!(world.factory.requests().len(), 0);
    assert_eq!(faults.hits("unreachable"), Some(2), "once, and once over another shard");
}

#[tokio::test]
async fn a_delay_comes_before_the_service_and_a_timeout_ends_with_the_deadline() {
    let (world, faults) = world(clients(1, 8));
    add(&faults, FaultRule::delay(2 * SECOND).named("slow").times(1));
    assert!(succeeded(&world.execute(&read(), 60 * SECOND).await));
    assert_eq!(world.time.elapsed(), 2 * SECOND);
    add(&faults, FaultRule::connection(ConnectionEffect::Timeout).named("hole"));
    let result = world.execute(&create(), 3 * SECOND).await;
    assert!(matches!(result.outcome, TransportOutcome::DeadlineExceeded { sent: Sent::Sent }), "{result:?}");
    assert_eq!(world.time.elapsed(), 5 * SECOND);
    assert_eq!(world.factory.requests().len(), 1);
    assert_eq!(world.in_flight(), 0);
}

#[tokio::test]
async fn a_shard_whose_requests_hang_is_replaced_and_the_requests_drain() {
    let (world, faults) = world(clients(1, 8));
    add(&faults, FaultRule::connection(ConnectionEffect::Timeout).named("hole").on_shard(0));
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
    let reads = |status| FaultRule::status(status, 0).in_container("d", "c").on(OperationKind::Read);
    add(&faults, reads(500).in_region("East US").named("elsewhere"));
    add(&faults, reads(503).in_region("west us").named("here"));
    let TransportOutcome::ServiceError(answer) = world.execute(&read(), SECOND).await.outcome else {
        panic!("it is in West US")
    };
    assert_eq!(answer.status, Status(503));
    assert!(succeeded(&world.execute(&create(), SECOND).await), "only reads");
    assert_eq!((faults.hits("elsewhere"), faults.hits("here")), (Some(0), Some(1)));
}

#[tokio::test]
async fn a_delayed_response_has_had_its_effect_and_a_stalled_one_ends_with_the_deadline() {
    let (world, faults) = world(clients(1, 8));
    add(&faults, FaultRule::delay(2 * SECOND).delaying_the_response().named("late").times(1));
    assert!(succeeded(&world.execute(&create(), 60 * SECOND).await));
    assert_eq!((world.time.elapsed(), world.factory.requests().len()), (2 * SECOND, 1));
    add(&faults, FaultRule::connection(ConnectionEffect::Stall).named("stalled").times(1));
    let result = world.execute(&create(), 3 * SECOND).await;
    assert!(matches!(result.outcome, TransportOutcome::DeadlineExceeded { sent: Sent::Sent }), "{result:?}");
    assert_eq!((world.time.elapsed(), world.factory.requests().len()), (5 * SECOND, 2));
}

#[tokio::test]
async fn a_connection_that_closes_before_the_operation_has_sent_the_request() {
    let (world, faults) = world(clients(1, 8));
    add(&faults, FaultRule::connection(ConnectionEffect::CloseBefore).times(1));
    let result = world.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, TransportOutcome::NoAnswer { sent: Sent::Sent, .. }), "{result:?}");
    assert_eq!(world.factory.requests().len(), 0, "the service did not get it");
}

#[tokio::test]
async fn an_injected_response_names_its_rule_and_has_its_headers() {
    let (world, faults) = world(clients(1, 8));
    let json = br#"{"id": "full", "effect": {"status": 503, "subStatus": 21008, "message": "no room",
                    "headers": {"x-note": "on purpose"}}}"#;
    add(&faults, FaultRule::from_json(json).expect("a rule"));
    let TransportOutcome::ServiceError(response) = world.execute(&read(), SECOND).await.outcome else {
        panic!("503")
    };
    assert_eq!((response.status, response.sub_status.0), (Status(503), 21008));
    assert_eq!(response.headers.get(FAULT_HEADER), Some("full"));
    assert_eq!(response.headers.get("x-note"), Some("on purpose"));
    assert!(String::from_utf8_lossy(&response.body).contains("no room"));
}

#[tokio::test]
async fn rules_that_only_the_account_can_apply_are_rejected_with_the_alternative() {
    let faults = FaultInjector::new(1);
    for (json, alternative) in [
        (r#"{"effect": {"connection": "refuse"}}"#, "failBeforeSending"),
        (r#"{"effect": {"connection": "blackHole"}}"#, "timeout"),
        (r#"{"match": {"partitionKeyRange": 0}, "effect": {"status": 503}}"#, "partitionKey"),
    ] {
        let rule = FaultRule::from_json(json.as_bytes()).expect("a rule");
        let error = faults.add(rule).expect_err(json).to_string();
        assert!(error.contains(alternative), "{error}");
    }
    assert!(faults.list().is_empty());
}

#[tokio::test]
async fn equal_seeds_give_equal_faults() {
    let outcomes = |seed| {
        let faults = FaultInjector::new(seed);
        add(&faults, FaultRule::status(503, 0).named("half").share(0.5));
        let request = RequestAttributes::default();
        (0..64).map(|_| faults.decide(&request).effect.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(1), outcomes(1));
    assert_ne!(outcomes(1), outcomes(2));
    let hits = outcomes(3).iter().filter(|hit| **hit).count();
    assert!((16..=48).contains(&hits), "{hits} of 64");
}
