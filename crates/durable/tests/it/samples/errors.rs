//! Failures of activities: handled, passed on, recovered from, retried.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, BackoffStrategy, ErrorDetails, OrchestrationContext, OrchestrationRegistry, RetryPolicy,
};

use super::activities;
use crate::running::Running;

#[tokio::test]
async fn an_error_of_an_activity_can_be_handled_or_passed_on() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Handles", |ctx: OrchestrationContext, reason: String| async move {
            match ctx.schedule_activity("Refuse", reason).await {
                Ok(_) => Err("it should refuse".to_owned()),
                Err(reason) => ctx.schedule_activity("Greet", reason).await,
            }
        })
        .register("PassesOn", |ctx: OrchestrationContext, reason: String| async move {
            ctx.schedule_activity("Refuse", reason).await
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("handled", "Handles", "no stock").await, "Hello, no stock!");
    let error = running.failure("passed-on", "PassesOn", "no stock").await;
    assert!(
        matches!(&error, ErrorDetails::Application { message, .. } if message == "no stock"),
        "{error:?}"
    );
    running.stop().await;
}

/// A step of several activities, whose first error ends it.
async fn format_all(ctx: &OrchestrationContext, names: &[&str]) -> Result<String, String> {
    let mut lines = Vec::new();
    for name in names {
        lines.push(ctx.schedule_activity("Greet", *name).await?);
        lines.push(ctx.schedule_activity("Double", *name).await?);
    }
    Ok(lines.join(" "))
}

#[tokio::test]
async fn an_error_goes_up_through_nested_functions() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Nested", |ctx: OrchestrationContext, input: String| async move {
            let names: Vec<&str> = input.split(' ').collect();
            format_all(&ctx, &names).await
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("good", "Nested", "1 2").await, "Hello, 1! 2 Hello, 2! 4");
    let error = running.failure("bad", "Nested", "1 two 3").await;
    assert!(error.display_message().contains("\"two\" is no number"), "{error:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_failed_step_is_compensated() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Saga", |ctx: OrchestrationContext, _: String| async move {
            let reserved = ctx.schedule_activity("Double", "21").await?;
            if let Err(reason) = ctx.schedule_activity("Refuse", "card declined").await {
                let undone = ctx.schedule_activity("Double", format!("-{reserved}")).await?;
                return Ok(format!("{reason}: {undone}"));
            }
            Err("the payment should be refused".to_owned())
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("saga", "Saga", "").await, "card declined: -84");
    running.stop().await;
}

#[tokio::test]
async fn an_activity_is_retried_until_it_succeeds_or_the_policy_ends() {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let activities = ActivityRegistry::builder()
        .register("Flaky", move |_: ActivityContext, good_from: String| {
            let call = counted.fetch_add(1, Ordering::SeqCst) + 1;
            async move {
                let good_from: u32 = good_from.parse().map_err(|_| "no number")?;
                if call >= good_from {
                    Ok(format!("call {call}"))
                } else {
                    Err(format!("call {call} failed"))
                }
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Retries", |ctx: OrchestrationContext, good_from: String| async move {
            let policy =
                RetryPolicy::new(4).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_millis(20) });
            ctx.schedule_activity_with_retry("Flaky", good_from, policy).await
        })
        .build();
    let running = Running::start(activities, orchestrations).await;
    assert_eq!(running.output("third", "Retries", "3").await, "call 3");
    calls.store(0, Ordering::SeqCst);
    let error = running.failure("never", "Retries", "99").await;
    assert!(error.display_message().contains("call 4 failed"), "{error:?}");
    running.stop().await;
}
