//! Reads, changes and writes back, and starts over when somebody else wrote in between.
//!
//! ```text
//! peri up                                     # or PERI_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example optimistic_update
//! ```

use perihelion::{CosmosClient, Error, ErrorKind, Item, Result};
use shop::{Order, order};

/// How often another writer may get in between.
const TRIES_MAX: usize = 10;

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example is there to be read")]
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
            // Somebody else was faster: read what they wrote, and add to that.
            Err(error) if error.kind() == ErrorKind::PreconditionFailed => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::PreconditionFailed, "o-3 changes too often"))
}
