//! Reads one item: with its system properties, only if it exists, only if it has changed.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example point_read
//! ```

use perihelion::{CosmosClient, Item, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    orders.upsert_item("ada", &order("o-1", "ada", 12.5)).await?;

    let read = orders.read_item::<Order>("ada", "o-1").await?;
    println!("{:?}: {} RU, {}", read.value(), read.charge(), read.diagnostics().summary());

    // Read it as an `Item` to get its system properties as well.
    let item = orders.read_item::<Item<Order>>("ada", "o-1").await?.into_value();
    println!("{} was written {} seconds after 1970, ETag {}", item.value.id, item.timestamp, item.etag);

    // With `optional` a missing item is no error; a missing container still is.
    let missing = orders.read_item::<Order>("ada", "o-999").optional().await?;
    println!("o-999: {}", if missing.is_some() { "exists" } else { "does not exist" });

    // A read of an item that has not changed costs less.
    let changed = orders.read_item::<Order>("ada", "o-1").if_none_match(item.etag).await?;
    println!("changed since: {}", changed.is_some());
    Ok(())
}
