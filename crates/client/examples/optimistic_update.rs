//! Reads an item, changes it and replaces it; starts again if another client has changed it in between.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example optimistic_update
//! ```

use perihelion::{CosmosClient, Error, ErrorKind, Item, Result};
use shop::{Order, order};

/// How often the update is tried when other clients change the item.
const TRIES_MAX: usize = 10;

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    orders.upsert_item("ada", &order("o-3", "ada", 10.0)).await?;

    for _ in 0..TRIES_MAX {
        let Item { value: mut order, etag, .. } =
            orders.read_item::<Item<Order>>("ada", "o-3").await?.into_value();
        order.total += 1.0;
        match orders.replace_item("ada", "o-3", &order).if_match(etag).await {
            Ok(_) => {
                println!("o-3 is at {}", order.total);
                return Ok(());
            }
            // Another client was faster: read its version and add to that.
            Err(error) if error.kind() == ErrorKind::PreconditionFailed => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::PreconditionFailed, "o-3 changes too often"))
}
