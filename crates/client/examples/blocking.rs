//! A program without async: every call waits for its result.
//!
//! ```text
//! cargo run -- up                                                       # in another terminal
//! cargo run -p perihelion --features blocking --example blocking
//! ```

mod shop;

use perihelion::blocking::{Wait, WaitEach};
use perihelion::{CosmosClient, Result};
use shop::{Order, connect, order, orders};

fn main() -> Result<()> {
    run(&connect()?)
}

/// Writes, reads and queries orders.
#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) fn run(client: &CosmosClient) -> Result<()> {
    let orders = orders(client).wait()?;
    for (id, total) in [("o-1", 12.5), ("o-2", 99.0), ("o-3", 7.25)] {
        orders.upsert_item("ada", &order(id, "ada", total)).wait()?;
    }
    let read = orders.read_item::<Order>("ada", "o-1").wait()?;
    println!("{} costs {}, and {} RU to read", read.value().id, read.value().total, read.charge());

    let expensive =
        orders.query_items::<Order>("SELECT * FROM o WHERE o.total > 10 ORDER BY o.total").stream();
    for found in expensive.wait_each() {
        let found = found?;
        println!("{} costs {}", found.id, found.total);
    }
    Ok(())
}
