//! Reads one item: as it is, with the service's own properties, only if it is there, only if it changed.
//!
//! ```text
//! peri up                                     # or PERI_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example point_read
//! ```

use perihelion::{CosmosClient, Item, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example is there to be read")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    orders.upsert_item("ada", &order("o-1", "ada", 12.5)).await?;

    let read = orders.read_item::<Order>("ada", "o-1").await?;
    println!("{:?}: {} RU, {}", read.value(), read.charge(), read.diagnostics().summary());

    // The same, with what the service keeps beside it.
    let item = orders.read_item::<Item<Order>>("ada", "o-1").await?.into_value();
    println!("{} was written {} seconds after 1970, version {}", item.value.id, item.timestamp, item.etag);

    // No item is not an error here; no container would be.
    let missing = orders.read_item::<Order>("ada", "o-999").optional().await?;
    println!("o-999: {}", if missing.is_some() { "there" } else { "not there" });

    // Cheap when nothing changed.
    let changed = orders.read_item::<Order>("ada", "o-1").if_none_match(item.etag).await?;
    println!("changed since: {}", changed.is_some());
    Ok(())
}
