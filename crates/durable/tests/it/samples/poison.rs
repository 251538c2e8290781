//! Messages that cannot be processed.

use std::time::Duration;

use duroxide::runtime::{RuntimeOptions, UnregisteredBackoffConfig};
use duroxide::{ErrorDetails, OrchestrationContext, OrchestrationRegistry, PoisonMessageType};

use super::activities;
use crate::running::{Running, runtime_options};

#[tokio::test]
async fn what_is_registered_nowhere_fails_after_its_attempts() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("CallsUnknown", |ctx: OrchestrationContext, _: String| async move {
            ctx.schedule_activity("Unknown", "").await
        })
        .register("Good", |ctx: OrchestrationContext, name: String| async move {
            ctx.schedule_activity("Greet", name).await
        })
        .build();
    let backoff = UnregisteredBackoffConfig {
        base_delay: Duration::from_millis(20),
        max_delay: Duration::from_millis(20),
    };
    let options = RuntimeOptions { max_attempts: 3, unregistered_backoff: backoff, ..runtime_options() };
    let running = Running::with_options(activities(), orchestrations, options).await;
    running.client.start_orchestration("unknown", "NobodyKnows", "").await.expect("started");
    running.client.start_orchestration("calls-unknown", "CallsUnknown", "").await.expect("started");
    assert_eq!(running.output("good", "Good", "you").await, "Hello, you!");
    for instance in ["unknown", "calls-unknown"] {
        let error = running.wait_for_failure(instance).await;
        let ErrorDetails::Poison { attempt_count: 4, max_attempts: 3, message_type, .. } = &error else {
            panic!("{error:?}")
        };
        let is_activity = matches!(message_type, PoisonMessageType::Activity { activity_name, .. } if activity_name == "Unknown");
        assert_eq!(is_activity, instance == "calls-unknown");
    }
    running.stop().await;
}
