//! Cancellation, with everything that an instance has started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, AppErrorKind, ErrorDetails, EventKind, OrchestrationContext, OrchestrationRegistry,
};

use crate::running::{Running, runtime_options};

fn is_cancelled(error: &ErrorDetails, expected: &str) -> bool {
    matches!(error, ErrorDetails::Application { kind: AppErrorKind::Cancelled { reason }, .. } if reason == expected)
}

#[tokio::test]
async fn cancelling_a_parent_cancels_its_children() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Child", |ctx: OrchestrationContext, _: String| async move {
            Ok(ctx.schedule_wait("Never").await)
        })
        .register("Middle", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Child", "child", "").await
        })
        .register("Parent", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_sub_orchestration_with_id("Middle", "middle", "").await
        })
        .build();
    let running = Running::start(ActivityRegistry::builder().build(), orchestrations).await;
    running.client.start_orchestration("parent", "Parent", "").await.expect("started");
    running.wait_for_event("child", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
    running.client.cancel_instance("parent", "not needed").await.expect("cancelled");
    let error = running.wait_for_failure("parent").await;
    assert!(is_cancelled(&error, "not needed"), "{error:?}");
    for instance in ["middle", "child"] {
        let error = running.wait_for_failure(instance).await;
        assert!(is_cancelled(&error, "parent canceled"), "{error:?}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_running_activity_of_a_cancelled_instance_is_cancelled() {
    let (started, told) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (starts, tells) = (Arc::clone(&started), Arc::clone(&told));
    let activities = ActivityRegistry::builder()
        .register("Long", move |ctx: ActivityContext, _: String| {
            let (started, told) = (Arc::clone(&starts), Arc::clone(&tells));
            async move {
                started.store(true, Ordering::SeqCst);
                ctx.cancelled().await;
                told.store(true, Ordering::SeqCst);
                Ok("stopped".to_owned())
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Works", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Long", "").await
        })
        .build();
    let options = duroxide::runtime::RuntimeOptions {
        worker_lock_timeout: Duration::from_secs(2),
        ..runtime_options()
    };
    let running = Running::with_options(activities, orchestrations, options).await;
    running.client.start_orchestration("works", "Works", "").await.expect("started");
    while !started.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.client.cancel_instance("works", "enough").await.expect("cancelled");
    let error = running.wait_for_failure("works").await;
    assert!(is_cancelled(&error, "enough"), "{error:?}");
    // The next renewal of its lock finds the work item deleted.
    let noticed = async {
        while !told.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), noticed).await.expect("the activity is told");
    running.stop().await;
}
