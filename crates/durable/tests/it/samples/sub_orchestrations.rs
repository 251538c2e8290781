//! Orchestrations that other orchestrations start and wait for.

use duroxide::{OrchestrationContext, OrchestrationRegistry};

use super::activities;
use crate::running::Running;

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Leaf", |ctx: OrchestrationContext, number: String| async move {
            ctx.schedule_activity("Double", number).await
        })
        .register("Middle", |ctx: OrchestrationContext, number: String| async move {
            let once = ctx.schedule_sub_orchestration("Leaf", number).await?;
            ctx.schedule_sub_orchestration("Leaf", once).await
        })
        .register("Root", |ctx: OrchestrationContext, number: String| async move {
            let result = ctx.schedule_sub_orchestration("Middle", number).await?;
            Ok(format!("root {result}"))
        })
        .register("FanOut", |ctx: OrchestrationContext, _: String| async move {
            let calls = (0..10).map(|n| ctx.schedule_sub_orchestration("Leaf", n.to_string())).collect();
            let results: Result<Vec<String>, String> = ctx.join(calls).await.into_iter().collect();
            Ok(results?.iter().filter_map(|text| text.parse::<i64>().ok()).sum::<i64>().to_string())
        })
        .register("Named", |ctx: OrchestrationContext, id: String| async move {
            ctx.schedule_sub_orchestration_with_id("Leaf", id, "4").await
        })
        .register("Counts", |ctx: OrchestrationContext, number: String| async move {
            let number: i64 = number.parse().map_err(|_| "no number")?;
            if number < 3 {
                ctx.continue_as_new((number + 1).to_string()).await
            } else {
                Ok("three".to_owned())
            }
        })
        .register("WaitsForCounts", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration("Counts", "0").await
        })
        .build()
}

#[tokio::test]
async fn nested_sub_orchestrations_return_their_results() {
    let running = Running::start(activities(), orchestrations()).await;
    assert_eq!(running.output("nested", "Root", "3").await, "root 12");
    let tree = running.client.get_instance_tree("nested").await.expect("a tree");
    assert_eq!(tree.all_ids.len(), 4, "{:?}", tree.all_ids);
    assert_eq!(running.output("named", "Named", "my-child").await, "8");
    assert_eq!(running.wait("my-child").await, "8");
    running.stop().await;
}

#[tokio::test]
async fn sub_orchestrations_run_in_parallel() {
    let running = Running::start(activities(), orchestrations()).await;
    assert_eq!(running.output("fan-out", "FanOut", "").await, "90");
    running.stop().await;
}

#[tokio::test]
async fn an_error_of_a_sub_orchestration_is_the_error_of_the_call() {
    let running = Running::start(activities(), orchestrations()).await;
    let error = running.failure("bad", "Root", "three").await;
    assert!(error.display_message().contains("\"three\" is no number"), "{error:?}");
    running.stop().await;
}

#[tokio::test]
async fn the_parent_waits_for_the_last_execution_of_a_child_that_continues_as_new() {
    let running = Running::start(activities(), orchestrations()).await;
    assert_eq!(running.output("patient", "WaitsForCounts", "").await, "three");
    running.stop().await;
}
