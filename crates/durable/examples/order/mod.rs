//! The orchestrations of the examples, and where they run.

use std::time::Duration;

use duroxide::{OrchestrationContext, OrchestrationRegistry, RetryPolicy};

/// The account of `peri up`, unless the environment names another one.
const LOCAL: &str = "AccountEndpoint=http://localhost:8081/;AccountKey=\
                     C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The instance that every run of the examples works on, until it ends.
pub(crate) const INSTANCE: &str = "order-4711";

/// The connection string of the account.
pub(crate) fn connection_string() -> String {
    std::env::var("COSMOS_CONNECTION_STRING").unwrap_or(LOCAL.to_owned())
}

pub(crate) fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register("Order", |context: OrchestrationContext, items: String| async move {
            let paid = context.schedule_wait("Paid").await;
            // Three parcels at once.
            let parcels: Vec<_> =
                (1..=3).map(|n| context.schedule_activity("Pack", format!("apple {n}"))).collect();
            let packed = context.join(parcels).await.len();
            context.schedule_timer(Duration::from_secs(2)).await;
            let shipped = context.schedule_sub_orchestration("Ship", items).await?;
            Ok(format!("{paid} paid, {packed} packed, {shipped}"))
        })
        .register("Ship", |context: OrchestrationContext, parcel: String| async move {
            context.schedule_activity_with_retry("CallCarrier", parcel, RetryPolicy::new(20)).await
        })
        .build()
}
