//! Stores, overwrites and removes an item.
//!
//! ```text
//! peri up                                     # or PERI_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example write_items
//! ```

use perihelion::{CosmosClient, ErrorKind, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example is there to be read")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    let mut cake = order("o-2", "ada", 20.0);

    // A new item. If there is one with its id, the error says so.
    match orders.create_item("ada", &cake).await {
        Ok(created) => println!("created for {} RU, version {:?}", created.charge(), created.etag()),
        Err(error) if error.kind() == ErrorKind::Conflict => println!("was there already: {error}"),
        Err(error) => return Err(error),
    }

    // Whether it is there or not.
    cake.total = 21.0;
    orders.upsert_item("ada", &cake).await?;

    // Only if it is there, and with the stored item in the answer.
    cake.total = 22.0;
    let stored = orders.replace_item("ada", "o-2", &cake).returning::<Order>().await?;
    println!("now {}", stored.value().total);

    orders.delete_item("ada", "o-2").await?;
    println!("deleted");
    Ok(())
}
