//! What an orchestration may not compute itself: ids and the time.

use std::time::{Duration, UNIX_EPOCH};

use duroxide::{OrchestrationContext, OrchestrationRegistry};

use super::activities;
use crate::running::Running;

#[tokio::test]
async fn ids_and_times_are_the_same_in_every_replay() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Calls", |ctx: OrchestrationContext, _: String| async move {
            let id = ctx.new_guid().await?;
            let before = ctx.utc_now().await?;
            ctx.schedule_timer(Duration::from_millis(30)).await;
            let after = ctx.utc_now().await?;
            ctx.schedule_activity("Greet", &id).await?;
            let millis =
                |time: std::time::SystemTime| time.duration_since(UNIX_EPOCH).map(|time| time.as_millis());
            let (before, after) =
                (millis(before).map_err(|_| "before 1970")?, millis(after).map_err(|_| "before 1970")?);
            Ok(format!("{id} {before} {after}"))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    let output = running.output("calls", "Calls", "").await;
    let parts: Vec<&str> = output.split(' ').collect();
    assert_eq!(parts[0].len(), 36, "{output}");
    let (before, after): (u64, u64) = (parts[1].parse().expect("millis"), parts[2].parse().expect("millis"));
    assert!(after >= before + 30, "{output}");
    running.stop().await;
}
