//! Sets the throughput of a container: manual or autoscale.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example throughput
//! ```

use perihelion::{ContainerProperties, CosmosClient, PartitionKeyDefinition, Result, Throughput};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    client.create_database_if_missing("metered").await?;
    let metered = client.database("metered");
    let key = PartitionKeyDefinition::hash("/sensor")?;
    let readings = ContainerProperties::new("readings", key);
    metered.create_container_with(&readings, &Throughput::manual(500)).await?;
    let readings = metered.container("readings");
    println!("{:?}", readings.throughput().await?.value());

    readings.set_throughput(&Throughput::manual(800)).await?;
    println!("{:?}", readings.throughput().await?.value());

    // Autoscale: between a tenth of 4000 RU/s and 4000 RU/s, depending on the load.
    readings.set_throughput(&Throughput::autoscale(4000)).await?;
    println!("{:?}", readings.throughput().await?.value());

    // The container has its own throughput, so the database has none.
    println!("the database: {:?}", metered.throughput().await?.value());
    metered.delete().await?;
    Ok(())
}
