//! Reads many items by their keys and ids, with few requests and one deadline, through a typed view of the container.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example read_many
//! ```

use std::time::Duration;

use perihelion::{CosmosClient, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    // All items of this container are orders, so the calls need not say so.
    let orders = shop::orders(client).await?.typed::<Order>();
    for n in 0..10 {
        let customer = format!("customer-{}", n % 3);
        orders.upsert(&customer, &order(&format!("many-{n}"), &customer, f64::from(n))).await?;
    }

    let keys_and_ids = [("customer-2", "many-2"), ("customer-0", "many-9"), ("customer-0", "many-999")];
    let response = orders.read_many(keys_and_ids).timeout(Duration::from_secs(2)).await?;
    // In the order in which they were asked for.
    for order in response.found() {
        println!("{}: {}", order.id, order.total);
    }
    for item in &response.missing {
        println!("{}: does not exist", item.id);
    }
    println!("{} RU in {} requests", response.charge, response.requests);
    Ok(())
}
