//! Instances that remove their own past.

use duroxide::providers::PruneOptions;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, OrchestrationContext, OrchestrationRegistry};

use crate::running::Running;

#[tokio::test]
async fn an_endless_orchestration_prunes_its_earlier_executions() {
    let activities = ActivityRegistry::builder()
        .register("Prune", |ctx: ActivityContext, _: String| async move {
            let keep_one = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
            let pruned = ctx.get_client().prune_executions(ctx.instance_id(), keep_one).await;
            Ok(pruned.map_err(|error| error.to_string())?.executions_deleted.to_string())
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Endless", |ctx: OrchestrationContext, round: String| async move {
            let round: u32 = round.parse().map_err(|_| "no number")?;
            let pruned = ctx.schedule_activity("Prune", "").await?;
            if round < 4 { ctx.continue_as_new((round + 1).to_string()).await } else { Ok(pruned) }
        })
        .build();
    let running = Running::start(activities, orchestrations).await;
    assert_eq!(running.output("endless", "Endless", "0").await, "1", "each round prunes the one before");
    assert_eq!(running.client.list_executions("endless").await.expect("executions"), [5]);
    running.stop().await;
}
