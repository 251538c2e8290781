//! Injected faults seen from above: what sharding and the transport make of them.

use crate::gateway::{GatewayOutcome, GatewayResult};
use perihelion_http::trace::Sent;
use std::time::Duration;

use protocol::status::Status;

use super::*;
use crate::clock::ManualTime;
use crate::gateway::testing::{Fixture, SECOND, create, read};
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

fn broken_connection() -> FaultRule {
    FaultRule::connection(ConnectionEffect::FailBeforeSending)
}

fn on_shard(number: u64) -> FaultRule {
    broken_connection().named(&format!("shard-{number}")).on_shard(number)
}

fn add(faults: &FaultInjector, rule: FaultRule) {
    faults.add(rule).expect("a rule that the driver can apply");
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
    add(&faults, on_shard(0));
    for _ in 0..4 {
        assert!(succeeded(&fixture.execute(&read(), SECOND).await));
    }
    fixture.time.advance(3 * SECOND);
    sweep(&fixture).await;
    assert_eq!(shard_ids(&fixture), [0, 1], "four failures are not five");
    assert!(succeeded(&fixture.execute(&read(), SECOND).await));
    assert_eq!(faults.hits("shard-0"), Some(5));
    sweep(&fixture).await;
    assert_eq!(shard_ids(&fixture), [1, 2], "the fifth evicts it, and another takes its place");
    let next = fixture.execute(&read(), SECOND).await;
    assert!(succeeded(&next) && next.earlier.is_empty());
}

#[tokio::test]
async fn scale_up_under_failure_and_scale_down_after_recovery() {
    let (fixture, faults) = fixture(clients(1, 4));
    add(&faults, broken_connection().named("all"));
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
    add(&faults, on_shard(0));
    for _ in 0..5 {
        assert!(succeeded(&fixture.execute(&read(), SECOND).await));
    }
    // Suspect, though not evicted yet: no request is sent there any more.
    for _ in 0..20 {
        let result = fixture.execute(&read(), SECOND).await;
        assert!(succeeded(&result) && result.earlier.is_empty());
        assert_ne!(result.last.expect("one request").shard, Some(0));
    }
    assert_eq!(faults.hits("shard-0"), Some(5));
    fixture.time.advance(3 * SECOND);
    assert!(succeeded(&fixture.execute(&read(), SECOND).await));
    sweep(&fixture).await;
    assert!(!shard_ids(&fixture).contains(&0));
    assert_eq!(fixture.with_shards(EndpointShards::count), 3);
}

#[tokio::test]
async fn full_pipeline_injected_responses_and_failures_are_handled_like_real_ones() {
    let (fixture, faults) = fixture(clients(1, 8));
    add(&faults, FaultRule::throttle(Duration::from_millis(100)).named("busy").times(2));
    let result = fixture.execute(&create(), 60 * SECOND).await;
    assert!(succeeded(&result));
    assert_eq!(result.earlier.len(), 2, "two waits, then the response");
    assert!(fixture.time.elapsed() >= Duration::from_millis(200));

    add(&faults, FaultRule::status(503, 0).named("full").times(1));
    let result = fixture.execute(&read(), SECOND).await;
    let GatewayOutcome::ServiceError(response) = &result.outcome else { panic!("{result:?}") };
    assert_eq!(response.status, Status::SERVICE_UNAVAILABLE, "the operation decides about the region");
    assert!(succeeded(&fixture.execute(&read(), SECOND).await));
}

#[tokio::test]
async fn an_operation_whose_response_is_lost_was_carried_out() {
    let (fixture, faults) = fixture(clients(1, 8));
    add(&faults, FaultRule::connection(ConnectionEffect::CloseAfter).named("lost").times(1));
    let result = fixture.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::NoResponse { sent: Sent::Sent, .. }), "{result:?}");
    assert_eq!(fixture.factory.requests().len(), 1, "the service got it, once");
    add(&faults, FaultRule::connection(ConnectionEffect::CloseAfter).named("lost").times(1));
    assert!(succeeded(&fixture.execute(&read(), SECOND).await), "a read is repeated");
    assert_eq!(fixture.factory.requests().len(), 3);
}

#[tokio::test]
async fn a_connection_that_fails_before_sending_sends_nothing() {
    let (fixture, faults) = fixture(clients(1, 8));
    add(&faults, broken_connection().named("unreachable"));
    let result = fixture.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::NoResponse { sent: Sent::NotSent, .. }), "{result:?}");
    assert_eq!(fixture.factory.requests().len(), 0);
    assert_eq!(faults.hits("unreachable"), Some(2), "once, and once over another shard");
}

#[tokio::test]
async fn a_delay_comes_before_the_service_and_a_timeout_ends_with_the_deadline() {
    let (fixture, faults) = fixture(clients(1, 8));
    add(&faults, FaultRule::delay(2 * SECOND).named("slow").times(1));
    assert!(succeeded(&fixture.execute(&read(), 60 * SECOND).await));
    assert_eq!(fixture.time.elapsed(), 2 * SECOND);
    add(&faults, FaultRule::connection(ConnectionEffect::Timeout).named("hole"));
    let result = fixture.execute(&create(), 3 * SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::DeadlineExceeded { sent: Sent::Sent }), "{result:?}");
    assert_eq!(fixture.time.elapsed(), 5 * SECOND);
    assert_eq!(fixture.factory.requests().len(), 1);
    assert_eq!(fixture.in_flight(), 0);
}

#[tokio::test]
async fn a_shard_whose_requests_hang_is_replaced_and_the_requests_drain() {
    let (fixture, faults) = fixture(clients(1, 8));
    add(&faults, FaultRule::connection(ConnectionEffect::Timeout).named("hole").on_shard(0));
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
    let reads = |status| FaultRule::status(status, 0).in_container("d", "c").on(OperationKind::Read);
    add(&faults, reads(500).in_region("East US").named("elsewhere"));
    add(&faults, reads(503).in_region("west us").named("here"));
    let GatewayOutcome::ServiceError(response) = fixture.execute(&read(), SECOND).await.outcome else {
        panic!("it is in West US")
    };
    assert_eq!(response.status, Status(503));
    assert!(succeeded(&fixture.execute(&create(), SECOND).await), "only reads");
    assert_eq!((faults.hits("elsewhere"), faults.hits("here")), (Some(0), Some(1)));
}

#[tokio::test]
async fn the_operation_of_a_delayed_response_was_carried_out_and_a_stalled_one_ends_with_the_deadline() {
    let (fixture, faults) = fixture(clients(1, 8));
    add(&faults, FaultRule::delay(2 * SECOND).delaying_the_response().named("late").times(1));
    assert!(succeeded(&fixture.execute(&create(), 60 * SECOND).await));
    assert_eq!((fixture.time.elapsed(), fixture.factory.requests().len()), (2 * SECOND, 1));
    add(&faults, FaultRule::connection(ConnectionEffect::Stall).named("stalled").times(1));
    let result = fixture.execute(&create(), 3 * SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::DeadlineExceeded { sent: Sent::Sent }), "{result:?}");
    assert_eq!((fixture.time.elapsed(), fixture.factory.requests().len()), (5 * SECOND, 2));
}

#[tokio::test]
async fn a_connection_that_closes_before_the_operation_has_sent_the_request() {
    let (fixture, faults) = fixture(clients(1, 8));
    add(&faults, FaultRule::connection(ConnectionEffect::CloseBefore).times(1));
    let result = fixture.execute(&create(), SECOND).await;
    assert!(matches!(result.outcome, GatewayOutcome::NoResponse { sent: Sent::Sent, .. }), "{result:?}");
    assert_eq!(fixture.factory.requests().len(), 0, "the service did not get it");
}

#[tokio::test]
async fn an_injected_response_names_its_rule_and_has_its_headers() {
    let (fixture, faults) = fixture(clients(1, 8));
    let json = br#"{"id": "full", "effect": {"status": 503, "subStatus": 21008, "message": "no room",
                    "headers": {"x-note": "on purpose"}}}"#;
    add(&faults, FaultRule::from_json(json).expect("a rule"));
    let GatewayOutcome::ServiceError(response) = fixture.execute(&read(), SECOND).await.outcome else {
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
