//! Changes properties of an item without reading it first.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example patch_item
//! ```

use perihelion::{CosmosClient, ErrorKind, Patch, Result};
use serde_json::Value;
use shop::order;

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    orders.upsert_item("ada", &order("o-4", "ada", 10.0)).await?;

    // All operations of a patch are applied, or none.
    let patch = Patch::new().increment("/total", 5).set("/paid", true).add("/tags", ["gift"]);
    let patched = orders.patch_item("ada", "o-4", patch).returning::<Value>().await?;
    println!("{}", patched.value());

    // A patch can have a condition.
    let refund = Patch::new().set("/total", 0).only_if("FROM c WHERE c.paid = false");
    match orders.patch_item("ada", "o-4", refund).await {
        Err(error) if error.kind() == ErrorKind::PreconditionFailed => println!("paid, so not refunded"),
        other => println!("refunded: {}", other?.charge()),
    }
    Ok(())
}
