//! Turns that do not fit into one batch, whole and interrupted.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{ExecutionMetadata, Provider, ProviderAdmin, TagFilter, WorkItem};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Event, EventKind, OrchestrationContext, OrchestrationRegistry};
use perihelion::faults::{ConnectionEffect, FaultInjector, FaultRule, OperationKind};
use perihelion::{Account, CosmosClient};
use perihelion_durable::{CosmosProvider, ProviderOptions};

use crate::factory;
use crate::running::{Running, runtime_options};

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Length", |_: ActivityContext, input: String| async move { Ok(input.len().to_string()) })
        .build()
}

/// The sum of numbers in results.
fn sum(results: Vec<Result<String, String>>) -> Result<String, String> {
    let mut sum = 0;
    for result in results {
        sum += result?.parse::<usize>().map_err(|_| "no number")?;
    }
    Ok(sum.to_string())
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Activities", |ctx: OrchestrationContext, input: String| async move {
            let (count, bytes) = input.split_once('x').ok_or("count x bytes")?;
            let count: usize = count.parse().map_err(|_| "no count")?;
            let input = "x".repeat(bytes.parse().map_err(|_| "no size")?);
            let calls = (0..count).map(|_| ctx.schedule_activity("Length", &input)).collect();
            sum(ctx.join(calls).await)
        })
        .register("One", |_: OrchestrationContext, _: String| async move { Ok("1".to_owned()) })
        .register("Children", |ctx: OrchestrationContext, count: String| async move {
            let count: usize = count.parse().map_err(|_| "no count")?;
            let calls = (0..count).map(|_| ctx.schedule_sub_orchestration("One", "")).collect();
            sum(ctx.join(calls).await)
        })
        .build()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_activities_and_many_bytes_from_one_turn() {
    let options = duroxide::runtime::RuntimeOptions { worker_concurrency: 8, ..runtime_options() };
    let running = Running::with_options(activities(), orchestrations(), options).await;
    assert_eq!(running.output("many", "Activities", "500x2").await, "1000");
    assert_eq!(running.output("large", "Activities", "20x160000").await, "3200000");
    let stats =
        running.client.get_orchestration_stats("large").await.expect("a response").expect("statistics");
    assert!(stats.history_size_bytes > 3_200_000, "{stats:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sub_orchestrations_from_one_turn() {
    let options = duroxide::runtime::RuntimeOptions { orchestration_concurrency: 8, ..runtime_options() };
    let running = Running::with_options(activities(), orchestrations(), options).await;
    assert_eq!(running.output("parent", "Children", "300").await, "300");
    running.stop().await;
}

const LOCK_TIME: Duration = Duration::from_millis(700);
const ITEMS: u64 = 150;

fn start() -> WorkItem {
    WorkItem::StartOrchestration {
        instance: "it".to_owned(),
        orchestration: "Large".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// What a large turn writes: its start, and activities with this input.
fn turn(input: &str) -> (Vec<Event>, Vec<WorkItem>, ExecutionMetadata) {
    let started = EventKind::OrchestrationStarted {
        name: "Large".to_owned(),
        version: "1.0.0".to_owned(),
        input: input.to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let items = (2..2 + ITEMS).map(|id| WorkItem::ActivityExecute {
        instance: "it".to_owned(),
        execution_id: 1,
        id,
        name: "Length".to_owned(),
        input: input.to_owned(),
        session_id: None,
        tag: None,
    });
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Large".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    };
    (vec![Event::with_event_id(1, "it", 1, None, started)], items.collect(), metadata)
}

async fn ack(
    provider: &CosmosProvider,
    token: &str,
    input: &str,
) -> Result<(), duroxide::providers::ProviderError> {
    let (events, items, metadata) = turn(input);
    provider.ack_orchestration_item(token, 1, events, items, Vec::new(), metadata, Vec::new()).await
}

/// Two providers on one container; the requests of the first one obey rules.
async fn two_providers() -> (FaultInjector, Arc<CosmosProvider>, Arc<CosmosProvider>) {
    let faults = FaultInjector::new(1);
    let account = Account::from_connection_string(factory::account()).expect("valid");
    let faulty = CosmosClient::builder(account).faults(&faults).build().expect("valid");
    let options: ProviderOptions = factory::options()
        .poll_intervals(Duration::from_millis(20), Duration::from_millis(50))
        .reconciler_interval(Duration::from_millis(50))
        .reconciler_age(Duration::from_millis(100));
    let first = CosmosProvider::new(&faulty, options.clone()).await.expect("a provider");
    let second = CosmosProvider::new(&factory::client(), options).await.expect("a provider");
    (faults, Arc::new(first), Arc::new(second))
}

/// Waits until so many activities wait, and no more come.
async fn expect_activities(provider: &CosmosProvider, count: usize) {
    for _ in 0..200 {
        let depth = provider.get_queue_depths().await.expect("depths").worker_queue;
        assert!(depth <= count, "{depth} activities of {count}");
        if depth == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the activities do not become visible");
}

/// The writes of a large turn: the note that it is staged, two batches, the commit, two batches that make it visible.
const COMMIT: u64 = 4;

#[tokio::test]
async fn a_large_turn_that_is_interrupted_happens_once_or_not_at_all() {
    for writes in 1..=7 {
        let (faults, first, second) = two_providers().await;
        first.enqueue_for_orchestrator(start(), None).await.expect("enqueued");
        let fetched =
            first.fetch_orchestration_item(LOCK_TIME, Duration::from_secs(5), None).await.expect("a turn");
        let (_, token, _) = fetched.expect("a turn");
        let cut = FaultRule::connection(ConnectionEffect::FailBeforeSending).on(OperationKind::Write);
        faults.add(cut.skipping(writes)).expect("a rule");
        let acked = ack(&first, &token, "first").await;
        assert_eq!(acked.is_ok(), writes >= COMMIT, "after {writes} writes: {acked:?}");
        drop(first);
        if writes < COMMIT {
            expect_activities(&second, 0).await;
            assert!(second.read("it").await.expect("a history").is_empty(), "nothing was committed");
            let again = second.fetch_orchestration_item(LOCK_TIME, Duration::from_secs(5), None).await;
            let (item, token, _) = again.expect("a turn").expect("the turn is repeated");
            assert_eq!((item.messages.len(), item.history.len()), (1, 0));
            ack(&second, &token, "second").await.expect("committed");
        }
        expect_activities(&second, ITEMS as usize).await;
        // Each activity is there once, of the turn that was committed.
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..ITEMS {
            let fetched = second
                .fetch_work_item(Duration::from_secs(30), Duration::from_secs(5), None, &TagFilter::default())
                .await;
            let (item, token, _) = fetched.expect("an activity").expect("an activity");
            let WorkItem::ActivityExecute { id, input, .. } = item else { panic!("{item:?}") };
            assert_eq!(input, if writes < COMMIT { "second" } else { "first" });
            assert!(ids.insert(id), "activity {id} is there twice");
            second.ack_work_item(&token, None).await.expect("ended");
        }
        crate::crashes::check_nothing_left(second.container()).await;
    }
}

#[tokio::test]
async fn a_batch_of_a_large_turn_that_arrives_late_overwrites_nothing() {
    let (faults, first, second) = two_providers().await;
    first.enqueue_for_orchestrator(start(), None).await.expect("enqueued");
    let fetched =
        first.fetch_orchestration_item(LOCK_TIME, Duration::from_secs(5), None).await.expect("a turn");
    let (_, token, _) = fetched.expect("a turn");
    let held_up = FaultRule::delay(Duration::from_millis(2500)).on(OperationKind::Batch);
    faults.add(held_up.times(1)).expect("a rule");
    let late = tokio::spawn({
        let first = Arc::clone(&first);
        async move { ack(&first, &token, "first").await }
    });
    let again = second.fetch_orchestration_item(Duration::from_secs(10), Duration::from_secs(5), None).await;
    let (_, token, _) = again.expect("a turn").expect("the lock expired");
    ack(&second, &token, "second").await.expect("committed");
    late.await.expect("no panic").expect_err("the lock was lost");
    let events = second.read("it").await.expect("a history");
    assert!(
        matches!(&events[0].kind, EventKind::OrchestrationStarted { input, .. } if input == "second"),
        "{events:?}"
    );
    expect_activities(&second, ITEMS as usize).await;
}
