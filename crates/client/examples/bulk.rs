//! Ten thousand items, as fast as the container takes them.
//!
//! ```text
//! COSMOS_CONNECTION_STRING="AccountEndpoint=…;AccountKey=…" cargo run -p perihelion --example bulk
//! ```
//!
//! The connection string is what `peri up` prints, or that of a real account. `peri up --ru enforce` shows how
//! the bulk keeps to the container's throughput.

use std::error::Error;

use futures::StreamExt as _;
use perihelion::{BulkOperation, ContainerProperties, CosmosClient, ErrorKind, PartitionKeyDefinition};
use serde_json::json;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example is there to be read")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = CosmosClient::from_connection_string(&std::env::var("COSMOS_CONNECTION_STRING")?)?;
    unless_there(client.create_database("shop").await)?;
    let shop = client.database("shop");
    let by_sensor = PartitionKeyDefinition::hash("/sensor")?;
    unless_there(shop.create_container(&ContainerProperties::new("readings", by_sensor)).await)?;
    let readings = shop.container("readings");

    let operations = (0..10_000).map(|number| {
        let sensor = format!("sensor-{}", number % 250);
        let reading = json!({"id": number.to_string(), "sensor": sensor, "celsius": number % 40});
        BulkOperation::upsert(sensor.as_str(), &reading)
    });
    // Storing the same reading twice does no harm, so one whose answer was lost is sent again.
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

    // A few at once, with their answers in the order of the operations.
    let done = readings.bulk().read("sensor-1", "1").delete("sensor-2", "2").await;
    for item in &done.items {
        match &item.outcome {
            Ok(answer) => println!("{}: {:?}", answer.status, answer.value::<serde_json::Value>()?),
            Err(error) => println!("operation {}: {error}", item.index),
        }
    }
    Ok(())
}

/// What is there already need not be made.
fn unless_there<T>(made: perihelion::Result<T>) -> perihelion::Result<()> {
    match made {
        Err(error) if error.kind() != ErrorKind::Conflict => Err(error),
        _ => Ok(()),
    }
}
