//! An instance of a change feed processor. Start several of them, and stop or kill some.
//!
//! ```text
//! export COSMOS_CONNECTION_STRING="AccountEndpoint=…;AccountKey=…"     # what `peri up` prints
//! cargo run -p perihelion --example change_feed_processor -- work      # in as many terminals as you like;
//!                                                                      # `work 20` takes 20 ms per order
//! cargo run -p perihelion --example change_feed_processor -- write 500 # writes 500 orders and prints them
//! cargo run -p perihelion --example change_feed_processor -- watch     # shows the leases, their owners and the lag
//! cargo run -p perihelion --example change_feed_processor -- rewind    # processes everything again
//! cargo run -p perihelion --example change_feed_processor -- delete    # deletes the leases
//! ```
//!
//! `work` prints a line per change, `id number`, when it has been handled; Ctrl+C stops it gracefully.

use std::error::Error;
use std::time::Duration;

use perihelion::{
    BatchContext, ChangeFeedProcessor, ChangeFeedStart, ContainerProperties, CosmosClient, DatabaseClient,
    HandlerError, PartitionKeyDefinition, ProcessorStart,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: String,
    customer: String,
    number: u32,
}

#[tokio::main]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints its results")]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = CosmosClient::from_connection_string(&std::env::var("COSMOS_CONNECTION_STRING")?)?;
    let shop = prepare(&client).await?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] | ["work"] | ["work", _] => {
            let pause = Duration::from_millis(arguments.get(1).map_or(Ok(0), |time| time.parse())?);
            let running = billing(&shop)
                .start(move |orders: Vec<Order>, context: BatchContext| async move {
                    for order in orders {
                        tokio::time::sleep(pause).await;
                        println!("{} {}", order.id, order.number);
                    }
                    eprintln!("{} of {}: {:?} behind", context.instance, context.range, context.lag);
                    Ok::<_, HandlerError>(())
                })
                .await?;
            eprintln!("{} is running; Ctrl+C stops it", running.instance());
            tokio::signal::ctrl_c().await?;
            running.stop().await?;
        }
        ["write", count] => {
            let orders = shop.container("orders");
            for number in 0..count.parse()? {
                let customer = format!("customer-{}", number % 97);
                let order = Order { id: format!("o-{number}"), customer: customer.clone(), number };
                orders.upsert_item(&customer, &order).await?;
                println!("{} {}", order.id, order.number);
            }
        }
        ["watch"] => {
            let processor = billing(&shop);
            for lease in processor.leases().await? {
                println!("{} {:?} at {}", lease.range, lease.owner, lease.continuation);
            }
            println!("{} changes behind", processor.lag().await?.total());
        }
        ["rewind"] => println!("generation {}", billing(&shop).rewind(ChangeFeedStart::Beginning).await?),
        ["delete"] => println!("{} leases deleted", billing(&shop).delete_leases().await?),
        _ => return Err("expected one of: work [MILLISECONDS], write COUNT, watch, rewind, delete".into()),
    }
    Ok(())
}

/// The processor with its name and settings, which all commands use.
fn billing(shop: &DatabaseClient) -> ChangeFeedProcessor {
    shop.container("orders")
        .change_feed_processor("billing")
        .lease_container(&shop.container("leases"))
        .from(ProcessorStart::Beginning)
        .poll_interval(Duration::from_millis(200))
        .lease_expiry(Duration::from_secs(6))
        .renew_interval(Duration::from_secs(2))
        .acquire_interval(Duration::from_secs(1))
}

async fn prepare(client: &CosmosClient) -> perihelion::Result<DatabaseClient> {
    client.create_database_if_missing("shop").await?;
    let shop = client.database("shop");
    for (id, path) in [("orders", "/customer"), ("leases", "/id")] {
        let key = PartitionKeyDefinition::hash(path).expect("a path");
        shop.create_container_if_missing(&ContainerProperties::new(id, key)).await?;
    }
    Ok(shop)
}
