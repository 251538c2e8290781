//! A database, a container, an item and a query: the program of the README.
//!
//! ```text
//! COSMOS_CONNECTION_STRING="AccountEndpoint=…;AccountKey=…" cargo run -p perihelion --example quickstart
//! ```

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use futures::TryStreamExt as _;
use perihelion::{ContainerProperties, CosmosClient, PartitionKeyDefinition, Query};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> perihelion::Result<()> {
    // What `peri up` prints, or what the portal shows under Keys.
    let account = std::env::var("COSMOS_CONNECTION_STRING").expect("COSMOS_CONNECTION_STRING is set");
    let client = CosmosClient::from_connection_string(&account)?;
    client.create_database_if_missing("shop").await?;
    let shop = client.database("shop");
    let by_category = PartitionKeyDefinition::hash("/category")?;
    shop.create_container_if_missing(&ContainerProperties::new("items", by_category)).await?;

    let items = shop.container("items");
    let stored = items.upsert_item("tea", &json!({"id": "1", "category": "tea", "price": 7})).await?;
    println!("{} RU; {}", stored.charge(), stored.diagnostics().summary());

    let cheap =
        Query::new("SELECT * FROM c WHERE c.price < @most ORDER BY c.price").with_parameter("@most", 10);
    let rows: Vec<Value> = items.query_items(cheap).stream().try_collect().await?;
    println!("{rows:?}");
    Ok(())
}

/// Runs the program from a test.
#[allow(dead_code, clippy::main_recursion, reason = "the example itself has no use for it")]
pub(crate) fn run() -> perihelion::Result<()> {
    main()
}
