//! Orchestrations that are started and not waited for.

use duroxide::{OrchestrationContext, OrchestrationRegistry};

use super::activities;
use crate::running::Running;

#[tokio::test]
async fn detached_orchestrations_run_by_themselves() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Note", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .register("Starter", |ctx: OrchestrationContext, _: String| async move {
            for name in ["a", "b"] {
                ctx.schedule_orchestration("Note", format!("note-{name}"), name);
            }
            let after = ctx.schedule_activity("Greet", "starter").await?;
            ctx.schedule_orchestration("Note", "note-c", "c");
            Ok(after)
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("starter", "Starter", "").await, "Hello, starter!");
    for name in ["a", "b", "c"] {
        assert_eq!(running.wait(&format!("note-{name}")).await, format!("Hello, {name}!"));
    }
    running.stop().await;
}
