//! Timers, and races against them.

#![expect(clippy::disallowed_methods, reason = "processes are killed, and locks expire, in real time")]

use std::time::{Duration, Instant};

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Either2, OrchestrationContext, OrchestrationRegistry};

use crate::running::Running;

fn slow_activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Sleep", |ctx: ActivityContext, millis: String| async move {
            let time = Duration::from_millis(millis.parse().map_err(|_| "no number")?);
            tokio::select! {
                () = tokio::time::sleep(time) => Ok("slept".to_owned()),
                () = ctx.cancelled() => Err("cancelled".to_owned()),
            }
        })
        .build()
}

#[tokio::test]
async fn a_timer_fires_when_its_time_has_come() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Timers", |ctx: OrchestrationContext, _: String| async move {
            let short = ctx.schedule_timer(Duration::from_millis(50));
            let long = ctx.schedule_timer(Duration::from_millis(400));
            ctx.join(vec![long, short]).await;
            Ok("done".to_owned())
        })
        .build();
    let running = Running::start(slow_activities(), orchestrations).await;
    let started = Instant::now();
    assert_eq!(running.output("timers", "Timers", "").await, "done");
    let elapsed = started.elapsed();
    assert!(elapsed >= Duration::from_millis(400) && elapsed < Duration::from_secs(5), "{elapsed:?}");
    running.stop().await;
}

#[tokio::test]
async fn the_faster_of_an_activity_and_a_timer_wins() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Deadline", |ctx: OrchestrationContext, millis: String| async move {
            let work = ctx.schedule_activity("Sleep", millis);
            let deadline = ctx.schedule_timer(Duration::from_millis(300));
            match ctx.select2(work, deadline).await {
                Either2::First(result) => result,
                Either2::Second(()) => Ok("too late".to_owned()),
            }
        })
        .build();
    let running = Running::start(slow_activities(), orchestrations).await;
    assert_eq!(running.output("in-time", "Deadline", "5").await, "slept");
    assert_eq!(running.output("late", "Deadline", "60000").await, "too late");
    running.stop().await;
}
