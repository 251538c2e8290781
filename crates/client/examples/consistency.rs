//! Sets the consistency, the regions and the deadline of one operation.
//!
//! ```text
//! peri up                                     # or COSMOS_CONNECTION_STRING of a real account
//! cargo run -p perihelion --example consistency
//! ```

use std::time::Duration;

use perihelion::{
    ConsistencyOptions, CosmosClient, HedgingOptions, OperationOptions, ReadConsistencyStrategy,
    RegionOptions, Result, TimeoutOptions,
};
use shop::{Order, order};

mod shop;

#[tokio::main]
async fn main() -> Result<()> {
    run(&shop::connect()?).await
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn run(client: &CosmosClient) -> Result<()> {
    let orders = shop::orders(client).await?;
    let written = orders.upsert_item("frank", &order("o-8", "frank", 1.0)).await?;

    // A client sees its own writes in every region. Another process sees them with the session token of the write.
    let token = written.session_token().unwrap_or_default().to_owned();
    let read = orders.read_item::<Order>("frank", "o-8").session_token(&token).await?;
    println!("as of the session {token}: {:?}", read.value());

    // Eventual consistency is the cheapest: it returns what a region has. This call leaves the first one out.
    let eventual = ConsistencyOptions::new().with_read_strategy(ReadConsistencyStrategy::Eventual);
    let quick = OperationOptions::new()
        .with_consistency(eventual)
        .with_regions(RegionOptions::new().with_excluded(["West US"]))
        .with_hedging(HedgingOptions::new().with_enabled(false))
        .with_timeouts(TimeoutOptions::new().with_end_to_end(Duration::from_secs(2)));
    match orders.read_item::<Order>("frank", "o-8").options(quick).optional().await? {
        Some(read) => println!("eventually: {}", read.diagnostics().summary()),
        None => println!("not replicated yet"),
    }
    Ok(())
}
