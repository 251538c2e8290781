//! Inputs and outputs that are values of types instead of text.

use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, EventKind, OrchestrationContext, OrchestrationRegistry};
use serde::{Deserialize, Serialize};

use crate::running::Running;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    items: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Total {
    sum: u32,
}

fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register_typed("Sum", |_: ActivityContext, order: Order| async move {
            Ok(Total { sum: order.items.iter().sum() })
        })
        .register("Shout", |_: ActivityContext, text: String| async move { Ok(text.to_uppercase()) })
        .build()
}

#[tokio::test]
async fn typed_and_plain_steps_mix() {
    let orchestrations = OrchestrationRegistry::builder()
        .register_typed("Typed", |ctx: OrchestrationContext, order: Order| async move {
            let total: Total = ctx.schedule_activity_typed("Sum", &order).await?;
            let shouted = ctx.schedule_activity("Shout", "ok").await?;
            if shouted == "OK" { Ok(total) } else { Err(shouted) }
        })
        .register("Plain", |ctx: OrchestrationContext, word: String| async move {
            let order = Order { items: vec![4, 5] };
            let total: Total = ctx.schedule_activity_typed("Sum", &order).await?;
            let child: Total = ctx.schedule_sub_orchestration_typed("Typed", &order).await?;
            Ok(format!("{word} {} {}", total.sum, child.sum))
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    let order = Order { items: vec![1, 2, 3] };
    running.client.start_orchestration_typed("typed", "Typed", order).await.expect("started");
    let waited =
        running.client.wait_for_orchestration_typed::<Total>("typed", std::time::Duration::from_secs(20));
    assert_eq!(waited.await.expect("an outcome").expect("a total"), Total { sum: 6 });
    assert_eq!(running.output("plain", "Plain", "totals").await, "totals 9 9");
    running.stop().await;
}

#[tokio::test]
async fn an_event_carries_a_value() {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Waits", |ctx: OrchestrationContext, _: String| async move {
            let order: Order = ctx.schedule_wait_typed("order").await;
            Ok(order.items.len().to_string())
        })
        .build();
    let running = Running::start(activities(), orchestrations).await;
    running.client.start_orchestration("waits", "Waits", "").await.expect("started");
    running.wait_for_event("waits", |event| matches!(event.kind, EventKind::ExternalSubscribed { .. })).await;
    let order = Order { items: vec![7, 8] };
    running.client.raise_event_typed("waits", "order", &order).await.expect("raised");
    assert_eq!(running.wait("waits").await, "2");
    running.stop().await;
}
