//! An instance of a change feed processor. Start several; kill some.
//!
//! ```text
//! export COSMOS_CONNECTION_STRING="AccountEndpoint=…;AccountKey=…"     # what `peri up` prints
//! cargo run -p perihelion --example change_feed_processor -- work      # in as many terminals as you like;
//!                                                                      # `work 20` takes 20 ms per order
//! cargo run -p perihelion --example change_feed_processor -- write 500 # orders, and says which
//! cargo run -p perihelion --example change_feed_processor -- watch     # who has what, and how far behind
//! cargo run -p perihelion --example change_feed_processor -- rewind    # everything once more
//! cargo run -p perihelion --example change_feed_processor -- retire    # no longer wanted: its leases are removed
//! ```
//!
//! `work` prints a line per change, `id number`, when it has been handled; Ctrl+C stops it gracefully.

use std::error::Error;
use std::time::Duration;

use perihelion::{
    BatchContext, ChangeFeedProcessor, ChangeFeedStart, ContainerProperties, CosmosClient, DatabaseClient,
    ErrorKind, HandlerError, PartitionKeyDefinition, ProcessorStart,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: String,
    customer: String,
    number: u32,
}

#[tokio::main]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "an example is there to be read")]
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
            eprintln!("{} is at work; Ctrl+C stops it", running.instance());
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
        ["retire"] => println!("{} leases removed", billing(&shop).retire().await?),
        _ => return Err("say one of: work [MILLISECONDS], write COUNT, watch, rewind, retire".into()),
    }
    Ok(())
}

/// The processor, as every instance and everybody who asks about it names it.
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
    unless_there(client.create_database("shop").await)?;
    let shop = client.database("shop");
    for (id, path) in [("orders", "/customer"), ("leases", "/id")] {
        let key = PartitionKeyDefinition::hash(path).expect("a path");
        unless_there(shop.create_container(&ContainerProperties::new(id, key)).await)?;
    }
    Ok(shop)
}

/// What is there already need not be made.
fn unless_there<T>(made: perihelion::Result<T>) -> perihelion::Result<()> {
    match made {
        Err(error) if error.kind() != ErrorKind::Conflict => Err(error),
        _ => Ok(()),
    }
}
