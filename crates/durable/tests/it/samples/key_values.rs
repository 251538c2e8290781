//! The key-value store of an instance.

use std::time::Duration;

use duroxide::{OrchestrationContext, OrchestrationRegistry};

use super::activities;
use crate::running::Running;

const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn requests_are_answered_through_values() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Server", |ctx: OrchestrationContext, _: String| async move {
            ctx.set_kv_value("state", "ready");
            for _ in 0..3 {
                let request = ctx.dequeue_event("requests").await;
                let response = ctx.schedule_activity("Double", &request).await?;
                ctx.set_kv_value(format!("response {request}"), response);
            }
            ctx.set_kv_value("state", "ended");
            Ok("served".to_owned())
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    let client = &running.client;
    client.start_orchestration("server", "Server", "").await.expect("started");
    assert_eq!(client.wait_for_kv_value("server", "state", WAIT_TIMEOUT).await.expect("a value"), "ready");
    for request in 1..=3 {
        client.enqueue_event("server", "requests", request.to_string()).await.expect("enqueued");
        let key = format!("response {request}");
        let response = client.wait_for_kv_value("server", &key, WAIT_TIMEOUT).await.expect("a response");
        assert_eq!(response, (request * 2).to_string());
    }
    assert_eq!(running.wait("server").await, "served");
    let values = client.get_kv_all_values("server").await.expect("all values");
    assert_eq!((values.len(), values["state"].as_str()), (4, "ended"));
    running.stop().await;
}

#[tokio::test]
async fn one_instance_reads_the_values_of_another() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Writer", |ctx: OrchestrationContext, value: String| async move {
            ctx.set_kv_value("rate", value);
            Ok(String::new())
        })
        .register("Reader", |ctx: OrchestrationContext, from: String| async move {
            let rate = ctx.get_kv_value_from_instance(from, "rate").await?;
            Ok(rate.unwrap_or_else(|| "none".to_owned()))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    running.output("writer", "Writer", "1.25").await;
    assert_eq!(running.output("reader", "Reader", "writer").await, "1.25");
    assert_eq!(running.output("lost-reader", "Reader", "nobody").await, "none");
    running.stop().await;
}

#[tokio::test]
async fn values_live_through_executions() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Counter", |ctx: OrchestrationContext, _: String| async move {
            let count = ctx.get_kv_value_typed::<u64>("count")?.unwrap_or_default() + 1;
            ctx.set_kv_value_typed("count", &count);
            if count == 2 {
                ctx.set_kv_value("second", "yes");
            }
            if count == 3 {
                ctx.clear_kv_value("second");
            }
            if count < 5 { ctx.continue_as_new("").await } else { Ok(count.to_string()) }
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    assert_eq!(running.output("counter", "Counter", "").await, "5");
    let values = running.client.get_kv_all_values("counter").await.expect("all values");
    assert_eq!(values.into_iter().collect::<Vec<_>>(), [("count".to_owned(), "5".to_owned())]);
    running.stop().await;
}
