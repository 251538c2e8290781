//! Reads the change feed, and continues from a continuation.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example follow_changes
//! ```

use perihelion::{ChangeFeedStart, CosmosClient, Result};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    orders.upsert_item("erin", &order("o-7", "erin", 1.0)).await?;

    let mut feed = orders.change_feed::<Order>().from(ChangeFeedStart::Beginning).start().await?;
    let mut seen = 0;
    loop {
        let page = feed.next_page().await?;
        // A program that reads forever would wait here and read again.
        if page.caught_up {
            break;
        }
        seen += page.items.len();
    }
    println!("{seen} orders so far");

    // Another process can continue here: store the continuation together with the result of your work.
    let continuation = feed.continuation();
    orders.upsert_item("erin", &order("o-7", "erin", 2.0)).await?;
    let mut feed = orders.change_feed::<Order>().continuation(continuation).start().await?;
    println!("since then: {:?}", feed.next_page().await?.items);
    Ok(())
}
