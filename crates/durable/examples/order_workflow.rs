//! An order that is paid, packed and shipped: activities, a timer, a sub-orchestration, an external event and retries.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion-durable --example order_workflow
//! ```
//!
//! End it half way with ctrl-c and start it again: the order continues where it was. Each run takes the order of the day
//! before it, if that has not ended.

mod order;

use std::sync::Arc;
use std::time::Duration;

use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Client, OrchestrationStatus};
use perihelion_durable::CosmosProvider;

use order::{INSTANCE, connection_string, orchestrations};

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example prints what it does")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let provider = Arc::new(CosmosProvider::from_connection_string(&connection_string()).await?);
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
