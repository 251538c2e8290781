//! Creates, upserts, replaces and deletes an item.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example write_items
//! ```

use perihelion::{CosmosClient, ErrorKind, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    let mut cake = order("o-2", "ada", 20.0);

    // Create fails with a conflict if an item with this id exists.
    match orders.create_item("ada", &cake).await {
        Ok(created) => println!("created for {} RU, ETag {:?}", created.charge(), created.etag()),
        Err(error) if error.kind() == ErrorKind::Conflict => println!("it exists already: {error}"),
        Err(error) => return Err(error),
    }

    // Upsert creates the item or replaces it.
    cake.total = 21.0;
    orders.upsert_item("ada", &cake).await?;

    // Replace fails if the item does not exist. `returning` adds the stored item to the response.
    cake.total = 22.0;
    let stored = orders.replace_item("ada", "o-2", &cake).returning::<Order>().await?;
    println!("now {}", stored.value().total);

    orders.delete_item("ada", "o-2").await?;
    println!("deleted");
    Ok(())
}
