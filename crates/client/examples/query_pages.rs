//! Reads a query page by page with a continuation in between, as a web server would do it.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example query_pages
//! ```

use std::num::NonZeroU32;

use perihelion::{CosmosClient, Query, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    for n in 0..10 {
        let customer = format!("customer-{}", n % 3);
        orders.upsert_item(&customer, &order(&format!("page-{n}"), &customer, f64::from(n))).await?;
    }

    // The caller keeps only this text between two requests. Any process can continue from it.
    let mut continuation: Option<String> = None;
    loop {
        let text = "SELECT * FROM c WHERE STARTSWITH(c.id, @start) ORDER BY c.total DESC";
        let mut query = orders
            .query_items::<Order>(Query::new(text).with_parameter("@start", "page-"))
            .page_size(NonZeroU32::new(4).expect("not zero"));
        if let Some(continuation) = continuation {
            query = query.continuation(continuation);
        }
        let mut pages = query.pages().await?;
        let Some(page) = pages.next_page().await? else { break };
        let totals: Vec<f64> = page.items.iter().map(|order| order.total).collect();
        println!("{totals:?} for {} RU in {} requests", page.charge, page.requests);
        continuation = page.continuation;
        if continuation.is_none() {
            break;
        }
    }
    Ok(())
}
