//! The status of instances: their own, custom ones, and statistics.

use std::time::Duration;

use duroxide::{OrchestrationContext, OrchestrationRegistry, OrchestrationStatus};

use super::activities;
use crate::running::Running;

#[tokio::test]
async fn a_custom_status_is_seen_while_the_instance_runs_and_afterwards() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Progress", |ctx: OrchestrationContext, _: String| async move {
            ctx.set_custom_status("half");
            ctx.schedule_wait("go").await;
            ctx.set_custom_status("whole");
            Ok("done".to_owned())
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    let missing = running.client.get_orchestration_status("progress").await.expect("a status");
    assert!(matches!(missing, OrchestrationStatus::NotFound), "{missing:?}");
    running.client.start_orchestration("progress", "Progress", "").await.expect("started");
    let patience = Duration::from_secs(20);
    let change = running.client.wait_for_status_change("progress", 0, Duration::from_millis(10), patience);
    match change.await.expect("a status") {
        OrchestrationStatus::Running { custom_status, custom_status_version: 1 } => {
            assert_eq!(custom_status.as_deref(), Some("half"));
        }
        other => panic!("{other:?}"),
    }
    running.client.raise_event("progress", "go", "").await.expect("raised");
    running.wait("progress").await;
    match running.client.get_orchestration_status("progress").await.expect("a status") {
        OrchestrationStatus::Completed { custom_status, custom_status_version: 2, .. } => {
            assert_eq!(custom_status.as_deref(), Some("whole"));
        }
        other => panic!("{other:?}"),
    }
    running.stop().await;
}

#[tokio::test]
async fn statistics_count_events_and_values() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Counted", |ctx: OrchestrationContext, _: String| async move {
            let greeting = ctx.schedule_activity("Greet", "you").await?;
            ctx.set_kv_value("greeting", &greeting);
            ctx.set_kv_value("state", "done");
            Ok(greeting)
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert!(running.client.get_orchestration_stats("counted").await.expect("a response").is_none());
    running.output("counted", "Counted", "").await;
    let stats =
        running.client.get_orchestration_stats("counted").await.expect("a response").expect("statistics");
    assert_eq!((stats.history_event_count, stats.kv_user_key_count, stats.queue_pending_count), (6, 2, 0));
    assert!(stats.history_size_bytes > 0 && stats.kv_total_value_bytes > 0, "{stats:?}");
    running.stop().await;
}
