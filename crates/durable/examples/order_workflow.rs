//! An order that is paid, packed and shipped: activities, a timer, a sub-orchestration, an external event and retries.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion-durable --example order_workflow
//! ```
//!
//! End it half way with ctrl-c and start it again: the order continues where it was. Each run takes the order of the day
//! before it, if that has not ended.

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus, RetryPolicy,
};
use perihelion_durable::CosmosProvider;

/// The account of `peri up`, unless the environment names another one.
const LOCAL: &str = "AccountEndpoint=http://localhost:8081/;AccountKey=\
                     C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// The instance that every run of this program works on, until it ends.
const INSTANCE: &str = "order-4711";

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example prints what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connection = std::env::var("COSMOS_CONNECTION_STRING").unwrap_or(LOCAL.to_owned());
    let provider = Arc::new(CosmosProvider::from_connection_string(&connection).await?);
    let runtime = Runtime::start_with_store(provider.clone(), activities(), orchestrations()).await;
    let client = Client::new(provider.clone());

    if matches!(client.get_orchestration_status(INSTANCE).await?, OrchestrationStatus::Running { .. }) {
        println!("{INSTANCE} goes on where it was");
    } else {
        let _ = client.delete_instance(INSTANCE, true).await;
        client.start_orchestration(INSTANCE, "Order", "3 apples").await?;
        println!("{INSTANCE} starts");
    }
    // Whoever watches the bank account says so when the money is there.
    let bank = client.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(2)).await;
        bank.raise_event(INSTANCE, "Paid", "12.50").await
    });

    match client.wait_for_orchestration(INSTANCE, Duration::from_secs(60)).await? {
        OrchestrationStatus::Completed { output, .. } => println!("{INSTANCE} has ended: {output}"),
        other => println!("{INSTANCE}: {other:?}"),
    }
    let (requests, charge) = provider.usage();
    println!("{requests} requests for {charge:.0} RU");
    runtime.shutdown(None).await;
    provider.close().await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example prints what it does")]
fn activities() -> ActivityRegistry {
    ActivityRegistry::builder()
        .register("Pack", |_: ActivityContext, item: String| async move {
            println!("  packing {item}");
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(format!("{item}, packed"))
        })
        .register("CallCarrier", |_: ActivityContext, parcel: String| async move {
            // The carrier is busy every other time.
            if fastrand::bool() {
                println!("  the carrier is busy");
                return Err("busy".to_owned());
            }
            println!("  the carrier takes {parcel}");
            Ok(format!("{parcel}, on its way"))
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
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
