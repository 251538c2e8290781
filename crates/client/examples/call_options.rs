//! Sets the options of single calls: deadline, regions, hedging, priority, headers, and metrics of a query.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example call_options
//! ```

use std::time::Duration;

use futures::TryStreamExt;
use perihelion::{CosmosClient, Priority, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    orders.upsert_item("ada", &order("o-1", "ada", 12.5)).timeout(Duration::from_secs(5)).await?;

    // A user waits for this one: a second region is asked after 100 ms, and after 2 s there is an error.
    let read = orders
        .read_item::<Order>("ada", "o-1")
        .timeout(Duration::from_secs(2))
        .hedging(Duration::from_millis(100))
        .priority(Priority::High)
        .await?;
    println!("{}", read.diagnostics().summary());

    // Nobody waits for this one: it gives way to others, and says how the query used the index.
    let query = orders
        .query_items::<Order>("SELECT * FROM c WHERE c.total > 10")
        .priority(Priority::Low)
        .throughput_bucket(1)
        .header("x-ms-correlation-id", "nightly-report")
        .hedging(false)
        .query_metrics()
        .index_metrics();
    let mut pages = query.pages().await?;
    while let Some(page) = pages.try_next().await? {
        println!("{} rows, {:?}, {:?}", page.items.len(), page.query_metrics, page.index_metrics);
    }
    Ok(())
}
