//! A database, a container, an item and a query: the whole of the README's example.
//!
//! ```text
//! peri up                                     # or PERI_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example quickstart
//! ```

use futures::TryStreamExt as _;
use perihelion::{ContainerProperties, CosmosClient, PartitionKeyDefinition, Query, Result};
use serde_json::{Value, json};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example is there to be read")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
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
    for row in rows {
        println!("{row}");
    }
    Ok(())
}
