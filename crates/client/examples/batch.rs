//! A transaction: several operations on the items of one customer, all or none.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example batch
//! ```

use perihelion::{Batch, CosmosClient, ErrorKind, Patch, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    let batch = Batch::new("bob")
        .upsert(&order("o-5", "bob", 1.0))
        .upsert(&order("o-6", "bob", 2.0))
        .patch("o-5", Patch::new().increment("/total", 10))
        .read("o-5");
    let response = orders.execute_batch(batch).await?;
    println!("{} operations for {} RU", response.value().len(), response.charge());
    println!("o-5 is now {:?}", response.value()[3].value::<Order>()?);

    // The create fails because o-5 exists, so o-6 is not deleted either. The error names the operation that failed.
    let batch = Batch::new("bob").delete("o-6").create(&order("o-5", "bob", 3.0));
    match orders.execute_batch(batch).await {
        Err(error) if error.kind() == ErrorKind::Conflict => println!("{}", error.message()),
        other => println!("unexpected: {other:?}"),
    }
    Ok(())
}
