//! Sequences, branches, loops, fan-out.

use duroxide::{OrchestrationContext, OrchestrationRegistry};

use super::activities;
use crate::running::Running;

#[tokio::test]
async fn hello() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Hello", |ctx: OrchestrationContext, name: String| async move {
            let first = ctx.schedule_activity("Greet", "Rust").await?;
            let second = ctx.schedule_activity("Greet", name).await?;
            Ok(format!("{first} {second}"))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("hello", "Hello", "world").await, "Hello, Rust! Hello, world!");
    running.stop().await;
}

#[tokio::test]
async fn a_result_decides_what_comes_next() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Branch", |ctx: OrchestrationContext, input: String| async move {
            let doubled = ctx.schedule_activity("Double", input).await?;
            if doubled.parse::<i64>().is_ok_and(|number| number > 10) {
                ctx.schedule_activity("Greet", "big one").await
            } else {
                ctx.schedule_activity("Greet", "small one").await
            }
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("small", "Branch", "2").await, "Hello, small one!");
    assert_eq!(running.output("big", "Branch", "6").await, "Hello, big one!");
    running.stop().await;
}

#[tokio::test]
async fn a_loop_uses_the_result_before() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Loop", |ctx: OrchestrationContext, mut value: String| async move {
            for _ in 0..10 {
                value = ctx.schedule_activity("Double", value).await?;
            }
            Ok(value)
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("loop", "Loop", "1").await, "1024");
    running.stop().await;
}

#[tokio::test]
async fn results_of_a_fan_out_come_in_the_order_of_the_calls() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("FanOut", |ctx: OrchestrationContext, count: String| async move {
            let count: i64 = count.parse().map_err(|_| "no count")?;
            let calls =
                (0..count).map(|number| ctx.schedule_activity("Double", number.to_string())).collect();
            let results: Result<Vec<String>, String> = ctx.join(calls).await.into_iter().collect();
            Ok(results?.join(","))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    let expected = (0..20).map(|number| (number * 2).to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(running.output("fan-out", "FanOut", "20").await, expected);
    running.stop().await;
}
