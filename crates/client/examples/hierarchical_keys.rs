//! A partition key of three levels: the whole key for one item, a prefix of it for all items that share the prefix.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example hierarchical_keys
//! ```

use futures::TryStreamExt as _;
use perihelion::{ContainerProperties, CosmosClient, PartitionKeyDefinition, Result};
use serde_json::{Value, json};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    client.create_database_if_missing("tenants").await?;
    let tenants = client.database("tenants");
    let levels = PartitionKeyDefinition::multi_hash(&["/tenant", "/user", "/session"])?;
    tenants.create_container_if_missing(&ContainerProperties::new("events", levels)).await?;
    let events = tenants.container("events");

    for (n, user) in ["ada", "ada", "bob"].into_iter().enumerate() {
        let event = json!({"id": n.to_string(), "tenant": "acme", "user": user, "session": n});
        events.upsert_item(("acme", user, n as f64), &event).await?;
    }

    // A point read needs the whole key.
    let event = events.read_item::<Value>(("acme", "bob", 2.0), "2").await?;
    println!("{} for {} RU", event.value()["user"], event.charge());

    // A query with a prefix of the key finds all items below it.
    let query = events.query_items::<Value>("SELECT * FROM c").partition_key(("acme", "ada"));
    let rows: Vec<Value> = query.stream().try_collect().await?;
    println!("{} events of ada", rows.len());
    tenants.delete().await?;
    Ok(())
}
