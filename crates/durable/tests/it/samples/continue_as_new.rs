//! Executions that follow each other.

use duroxide::{EventKind, OrchestrationContext, OrchestrationRegistry};

use super::activities;
use crate::running::Running;

#[tokio::test]
async fn each_execution_begins_with_an_empty_history() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Counter", |ctx: OrchestrationContext, number: String| async move {
            let doubled = ctx.schedule_activity("Double", number).await?;
            if doubled.parse::<i64>().is_ok_and(|number| number < 32) {
                ctx.continue_as_new(doubled).await
            } else {
                Ok(doubled)
            }
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("counter", "Counter", "1").await, "32");
    assert_eq!(running.client.list_executions("counter").await.expect("executions"), [1, 2, 3, 4, 5]);
    for execution in 1..5 {
        let events = running.history("counter", execution).await;
        let last = events.last().expect("an event");
        assert!(matches!(last.kind, EventKind::OrchestrationContinuedAsNew { .. }), "{last:?}");
    }
    running.stop().await;
}

#[tokio::test]
async fn queued_events_go_over_to_the_next_execution() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Drain", |ctx: OrchestrationContext, taken: String| async move {
            let next = ctx.dequeue_event("q").await;
            let taken = if taken.is_empty() { next } else { format!("{taken},{next}") };
            if taken.split(',').count() < 6 { ctx.continue_as_new(taken).await } else { Ok(taken) }
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    running.client.start_orchestration("drain", "Drain", "").await.expect("started");
    for number in 0..6 {
        running.client.enqueue_event("drain", "q", number.to_string()).await.expect("enqueued");
    }
    assert_eq!(running.wait("drain").await, "0,1,2,3,4,5");
    running.stop().await;
}

#[tokio::test]
async fn many_instances_continue_as_new_under_load() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Rounds", |ctx: OrchestrationContext, number: String| async move {
            let round: u64 = number.parse().map_err(|_| "no number")?;
            ctx.schedule_activity("Double", number).await?;
            if round < 5 { ctx.continue_as_new((round + 1).to_string()).await } else { Ok("done".to_owned()) }
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    for n in 0..20 {
        running.client.start_orchestration(&format!("r-{n}"), "Rounds", "0").await.expect("started");
    }
    for n in 0..20 {
        assert_eq!(running.wait(&format!("r-{n}")).await, "done");
    }
    running.stop().await;
}
