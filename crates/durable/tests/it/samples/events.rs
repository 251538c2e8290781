//! Events from outside: awaited ones, and queues of them.

use std::time::Duration;

use duroxide::{Either2, EventKind, OrchestrationContext, OrchestrationRegistry};

use super::activities;
use crate::running::Running;

#[tokio::test]
async fn an_event_that_is_awaited_continues_the_orchestration() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Approval", |ctx: OrchestrationContext, _: String| async move {
            let approval = ctx.schedule_wait("Approved");
            let never = ctx.schedule_timer(Duration::from_secs(600));
            match ctx.select2(approval, never).await {
                Either2::First(by) => ctx.schedule_activity("Greet", by).await,
                Either2::Second(()) => Err("nobody approved".to_owned()),
            }
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    running.client.start_orchestration("approval", "Approval", "").await.expect("started");
    running
        .wait_for_event("approval", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. }))
        .await;
    running.client.raise_event("approval", "Approved", "Ada").await.expect("raised");
    assert_eq!(running.wait("approval").await, "Hello, Ada!");
    running.stop().await;
}

#[tokio::test]
async fn an_event_races_an_activity() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Race", |ctx: OrchestrationContext, _: String| async move {
            let event = ctx.schedule_wait("Never");
            let greeting = ctx.schedule_activity("Greet", "racer");
            match ctx.select2(event, greeting).await {
                Either2::First(_) => Err("no such event was raised".to_owned()),
                Either2::Second(greeting) => greeting,
            }
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("race", "Race", "").await, "Hello, racer!");
    running.stop().await;
}

#[tokio::test]
async fn queued_events_are_taken_in_order_and_none_is_lost() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Mailbox", |ctx: OrchestrationContext, count: String| async move {
            let count: usize = count.parse().map_err(|_| "no count")?;
            let mut taken = Vec::new();
            while taken.len() < count {
                let letter = ctx.dequeue_event("letters").await;
                taken.push(ctx.schedule_activity("Double", letter).await?);
            }
            Ok(taken.join(","))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    running.client.start_orchestration("mailbox", "Mailbox", "12").await.expect("started");
    for number in 0..12 {
        running.client.enqueue_event("mailbox", "letters", number.to_string()).await.expect("enqueued");
    }
    let expected = (0..12).map(|number| (number * 2).to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(running.wait("mailbox").await, expected);
    running.stop().await;
}

#[tokio::test]
async fn settings_are_reloaded_between_rounds() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Reload", |ctx: OrchestrationContext, _: String| async move {
            let mut log = Vec::new();
            for round in 0..2 {
                loop {
                    let update = ctx.dequeue_event("settings");
                    let nothing_more = ctx.schedule_timer(Duration::from_millis(100));
                    match ctx.select2(update, nothing_more).await {
                        Either2::First(setting) => log.push(setting),
                        Either2::Second(()) => break,
                    }
                }
                log.push(format!("round {round}"));
                ctx.set_custom_status(log.join(","));
                ctx.schedule_wait("next").await;
            }
            Ok(log.join(","))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    running.client.start_orchestration("reload", "Reload", "").await.expect("started");
    for setting in ["a", "b"] {
        running.client.enqueue_event("reload", "settings", setting).await.expect("enqueued");
    }
    let waits = |event: &duroxide::Event| matches!(&event.kind, EventKind::ExternalSubscribed { name } if name == "next");
    running.wait_for_event("reload", waits).await;
    running.client.enqueue_event("reload", "settings", "c").await.expect("enqueued");
    running.client.raise_event("reload", "next", "").await.expect("raised");
    let mut seen = 0;
    let status = loop {
        let status = running.client.wait_for_status_change(
            "reload",
            seen,
            Duration::from_millis(10),
            Duration::from_secs(20),
        );
        match status.await.expect("a status") {
            duroxide::OrchestrationStatus::Running { custom_status: Some(text), custom_status_version } => {
                seen = custom_status_version;
                if text.contains("round 1") {
                    break text;
                }
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(status, "a,b,round 0,c,round 1");
    running.client.raise_event("reload", "next", "").await.expect("raised");
    assert_eq!(running.wait("reload").await, status);
    running.stop().await;
}
