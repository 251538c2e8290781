//! Queries as streams: the rows of one customer, and sums over all customers.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example query_stream
//! ```

use futures::TryStreamExt as _;
use perihelion::{CosmosClient, Query, Result};
use serde::Deserialize;
use shop::{Order, order};

#[derive(Deserialize)]
struct Sum {
    customer: String,
    total: f64,
}

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    for (n, customer) in ["carol", "dan", "carol"].into_iter().enumerate() {
        orders.upsert_item(customer, &order(&format!("stream-{n}"), customer, 5.0)).await?;
    }

    // A query with a partition key reads one physical partition, which is the cheapest kind of query.
    let cheap = Query::new("SELECT * FROM c WHERE c.total < @most").with_parameter("@most", 10);
    let mut rows = Box::pin(orders.query_items::<Order>(cheap).partition_key("carol").stream());
    while let Some(order) = rows.try_next().await? {
        println!("{order:?}");
    }

    // A query over all customers is sent to every partition; the client merges the results.
    let sums = "SELECT c.customer, SUM(c.total) AS total FROM c GROUP BY c.customer";
    let sums: Vec<Sum> = orders.query_items(sums).stream().try_collect().await?;
    for Sum { customer, total } in sums {
        println!("{customer}: {total}");
    }
    Ok(())
}
