//! Stores ten thousand items, as fast as the throughput of the container allows.
//!
//! ```text
//! COSMOS_CONNECTION_STRING="AccountEndpoint=…;AccountKey=…" cargo run -p perihelion --example bulk
//! ```
//!
//! The connection string is the one that `peri up` prints, or that of a real account. `peri up --ru enforce` shows how
//! the bulk adapts to the throughput of the container.

use std::error::Error;

use futures::StreamExt as _;
use perihelion::{BulkOperation, ContainerProperties, CosmosClient, PartitionKeyDefinition};
use serde_json::json;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example prints its results")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = CosmosClient::from_connection_string(&std::env::var("COSMOS_CONNECTION_STRING")?)?;
    client.create_database_if_missing("shop").await?;
    let shop = client.database("shop");
    let by_sensor = PartitionKeyDefinition::hash("/sensor")?;
    shop.create_container_if_missing(&ContainerProperties::new("readings", by_sensor)).await?;
    let readings = shop.container("readings");

    let operations = (0..10_000).map(|number| {
        let sensor = format!("sensor-{}", number % 250);
        let reading = json!({"id": number.to_string(), "sensor": sensor, "celsius": number % 40});
        BulkOperation::upsert(sensor.as_str(), &reading)
    });
    // An upsert is idempotent here, so one whose response is lost is sent again.
    let mut results = readings.bulk().repeatable().execute(operations);
    while let Some(item) = results.next().await {
        if let Err(error) = item.outcome {
            println!("reading {} was not stored: {error}", item.index);
        }
    }
    let summary = results.summary();
    println!(
        "{} of {} stored in {:.1?} with {} requests and {:.0} RU; throttled {} times",
        summary.succeeded,
        summary.operations,
        summary.elapsed,
        summary.requests,
        summary.charge,
        summary.throttled,
    );

    // A few operations, with their results in the order of the operations.
    let response = readings.bulk().read("sensor-1", "1").delete("sensor-2", "2").await;
    for item in &response.items {
        match &item.outcome {
            Ok(response) => println!("{}: {:?}", response.status, response.value::<serde_json::Value>()?),
            Err(error) => println!("operation {}: {error}", item.index),
        }
    }
    Ok(())
}
