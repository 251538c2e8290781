//! A database, a container, an item and a query.
//!
//! ```text
//! COSMOS_CONNECTION_STRING="AccountEndpoint=…;AccountKey=…" cargo run -p perihelion --example quickstart
//! ```
//!
//! The connection string is what `peri up` prints, or that of a real account.

use std::error::Error;

use futures::TryStreamExt as _;
use perihelion::{ContainerProperties, CosmosClient, ErrorKind, PartitionKeyDefinition, Query};
use serde_json::json;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example is there to be read")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = CosmosClient::from_connection_string(&std::env::var("COSMOS_CONNECTION_STRING")?)?;
    unless_there(client.create_database("shop").await)?;
    let shop = client.database("shop");
    let by_category = PartitionKeyDefinition::hash("/category")?;
    unless_there(shop.create_container(&ContainerProperties::new("items", by_category)).await)?;

    let items = shop.container("items");
    let stored = items.upsert_item("tea", &json!({"id": "1", "category": "tea", "price": 7})).await?;
    println!("{} RU; {}", stored.charge(), stored.diagnostics().summary());

    let cheap =
        Query::new("SELECT * FROM c WHERE c.price < @most ORDER BY c.price").with_parameter("@most", 10);
    let rows: Vec<serde_json::Value> = items.query_items(cheap).stream().try_collect().await?;
    for row in rows {
        println!("{row}");
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
