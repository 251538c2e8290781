//! What cannot be processed: it is named, set aside or left alone, and the rest goes on.

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, ErrorDetails, EventKind, OrchestrationContext, OrchestrationRegistry, PoisonMessageType,
};
use perihelion::{ContainerClient, ContainerProperties, PartitionKeyDefinition, Patch};
use perihelion_durable::{CosmosProvider, dispatch_slot};
use serde_json::{Value, json};

use crate::factory;
use crate::running::{Running, runtime_options};

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Repeat", |_: ActivityContext, count: String| async move {
            Ok("x".repeat(count.parse().map_err(|_| "no number")?))
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Good", |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.schedule_activity("Repeat", "3").await?.len().to_string())
        })
        .register(
            "Waits",
            |ctx: OrchestrationContext, _: String| async move { Ok(ctx.schedule_wait("go").await) },
        )
        .register("Result", |ctx: OrchestrationContext, count: String| async move {
            Ok(ctx.schedule_activity("Repeat", count).await?.len().to_string())
        })
        .register("Output", |_: OrchestrationContext, _: String| async move { Ok("x".repeat(3_000_000)) })
        .register("Child", |ctx: OrchestrationContext, id: String| async move {
            ctx.schedule_sub_orchestration_with_id("Good", id, "").await
        })
        .build()
}

async fn start() -> Running {
    // What the test does to documents is to be seen at once, so nothing is remembered.
    let options = factory::options()
        .history_cache_bytes(0)
        .poll_intervals(Duration::from_millis(20), Duration::from_millis(100))
        .reconciler_interval(Duration::from_millis(50));
    let provider = CosmosProvider::new(&factory::client(), options).await.expect("a provider");
    let runtime_options = duroxide::runtime::RuntimeOptions { max_attempts: 2, ..runtime_options() };
    Running::on(Arc::new(provider), activities(), orchestrations(), runtime_options).await
}

async fn good(running: &Running, instance: &str) {
    assert_eq!(running.output(instance, "Good", "").await, "3");
}

/// Waits until a document is set aside, and returns why.
async fn quarantined(container: &ContainerClient, partition: &str, id: &str) -> String {
    for _ in 0..300 {
        let document = container.read_item::<Value>(partition, id).await.expect("it stays").into_value();
        if document["type"] == "quarantined" {
            return document["error"].as_str().expect("a reason").to_owned();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} is not set aside");
}

/// A message or an activity with nonsense in it.
fn item(id: &str, document_type: &str) -> Value {
    json!({"id": id, "instanceId": "odd", "type": document_type, "schemaVersion": 1, "workItem": {"Nonsense": 1},
           "dispatchSlot": dispatch_slot("odd"), "visibleAt": 1.0, "enqueuedAt": 1.0, "createdAt": 1})
}

#[tokio::test]
async fn items_that_cannot_be_read_are_set_aside() {
    let running = start().await;
    let container = running.provider.container().clone();
    for (id, document_type) in
        [("m", "orch_queue"), ("w", "worker_queue"), ("i", "outbox_intent"), ("r", "release")]
    {
        let mut unknown = item(id, document_type);
        container.create_item("odd", &unknown).await.expect("created");
        unknown["id"] = json!(format!("{id}-short"));
        unknown.as_object_mut().expect("an object").remove("workItem");
        unknown["enqueuedAt"] = json!("yesterday");
        container.create_item("odd", &unknown).await.expect("created");
    }
    good(&running, "good").await;
    for id in ["m", "w", "i", "r", "m-short", "w-short", "i-short", "r-short"] {
        let error = quarantined(&container, "odd", id).await;
        assert!(!error.is_empty(), "{id}");
        if id == "m" || id == "w" {
            assert!(error.contains("Nonsense"), "{error}");
        } else {
            assert!(error.contains(id), "{error}");
        }
    }
    good(&running, "good-2").await;
    running.stop().await;
}

#[tokio::test]
async fn documents_of_a_newer_version_wait_for_a_newer_release() {
    let running = start().await;
    let container = running.provider.container().clone();
    running.client.start_orchestration("waits", "Waits", "").await.expect("started");
    running.wait_for_event("waits", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
    let version = |version: u32| Patch::new().set("/schemaVersion", version);
    container.patch_item("waits", "waits:instance", version(99)).await.expect("patched");
    let mut newer = item("newer", "worker_queue");
    newer["schemaVersion"] = json!(99);
    container.create_item("odd", &newer).await.expect("created");
    running.client.raise_event("waits", "go", "gone").await.expect("raised");
    good(&running, "good").await;
    let error = running.client.get_orchestration_status("waits").await.expect_err("not readable").to_string();
    assert!(
        error.contains("\"waits\"") && error.contains("version 99") && error.contains("upgrade"),
        "{error}"
    );
    let untouched = container.read_item::<Value>("odd", "newer").await.expect("it stays").into_value();
    assert_eq!((&untouched["type"], &untouched["schemaVersion"]), (&json!("worker_queue"), &json!(99)));
    container.patch_item("waits", "waits:instance", version(1)).await.expect("patched");
    assert_eq!(running.wait("waits").await, "gone");
    running.stop().await;
}

#[tokio::test]
async fn an_instance_whose_history_is_malformed_fails_and_names_it() {
    let running = start().await;
    running.client.start_orchestration("waits", "Waits", "").await.expect("started");
    running.wait_for_event("waits", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
    let malformed = Patch::new().set("/eventData", json!([{"no": "event"}]));
    running.provider.container().patch_item("waits", "waits:history:1:1", malformed).await.expect("patched");
    running.client.raise_event("waits", "go", "gone").await.expect("raised");
    good(&running, "good").await;
    let info = async {
        loop {
            let info = running.client.get_instance_info("waits").await;
            match info {
                Ok(info) if info.status == "Failed" => return info.output.unwrap_or_default(),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let output = tokio::time::timeout(Duration::from_secs(30), info).await.expect("it fails");
    assert!(output.contains("waits"), "{output}");
    running.stop().await;
}

#[tokio::test]
async fn ids_that_no_document_can_have_are_refused_by_name() {
    let running = start().await;
    for id in ["a/b", "a?b", "a#b", "a\\b", "", " "] {
        let error =
            running.client.start_orchestration(id, "Good", "").await.expect_err("refused").to_string();
        assert!(error.contains("cannot be the id of an instance"), "{error}");
    }
    let error = running.failure("parent", "Child", "a/b").await;
    assert!(error.display_message().contains("\"a/b\" cannot be the id of an instance"), "{error:?}");
    good(&running, "good").await;
    running.stop().await;
}

#[tokio::test]
async fn payloads_that_are_too_large_fail_what_sends_them() {
    let running = start().await;
    let error = running.client.start_orchestration("input", "Good", "x".repeat(2_500_000)).await;
    let error = error.expect_err("too large");
    assert!(!error.is_retryable(), "{error}");
    // An event that no document can hold.
    let error = running.failure("output", "Output", "").await;
    assert!(matches!(error, ErrorDetails::Infrastructure { retryable: false, .. }), "{error:?}");
    assert!(error.display_message().contains("pass large payloads by reference"), "{error:?}");
    let error = running.failure("result", "Result", "1800000").await;
    assert!(error.display_message().contains("pass large payloads by reference"), "{error:?}");
    // A result that no message can hold: the activity is tried again, as often as the runtime allows.
    let error = running.failure("large-result", "Result", "2500000").await;
    let is_activity =
        matches!(&error, ErrorDetails::Poison { message_type: PoisonMessageType::Activity { .. }, .. });
    assert!(is_activity || error.display_message().contains("poison"), "{error:?}");
    good(&running, "good").await;
    running.stop().await;
}

#[tokio::test]
async fn a_container_with_another_partition_key_is_refused_by_name() {
    let client = factory::client();
    let name = format!("orders-{:016x}", fastrand::u64(..));
    client.create_database_if_missing("tests").await.expect("a database");
    let key = PartitionKeyDefinition::hash("/customer").expect("a path");
    client
        .database("tests")
        .create_container(&ContainerProperties::new(&name, key))
        .await
        .expect("a container");
    let options = factory::options().container(&name);
    let error = CosmosProvider::new(&client, options).await.expect_err("another key");
    assert!(!error.is_retryable());
    let text = error.to_string();
    assert!(text.contains(&name) && text.contains("/customer") && text.contains("/instanceId"), "{text}");
}
