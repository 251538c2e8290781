//! Tests what an application does about failures, by injecting them into its client.
//!
//! ```text
//! cargo run -p perihelion --features fault-injection --example inject_faults
//! ```
//!
//! Starts a local account in two regions, gives the client rules in Rust and in JSON, and checks that orders are
//! stored once and can be read, whatever happens to single requests.

use std::error::Error;

use emulator::{Emulator, EmulatorConfig};
use perihelion::faults::{FaultInjector, FaultRule, OperationKind};
use perihelion::{Account, ContainerClient, CosmosClient, ErrorKind};
use shop::{Order, order};

mod shop;

/// What is tested: an order is stored once, also when no response tells whether it was.
async fn place_order(orders: &ContainerClient, order: &Order) -> perihelion::Result<()> {
    match orders.create_item(order.customer.as_str(), order).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::Undecided => {
            // The create may have been carried out: read, then decide.
            match orders.read_item::<Order>(order.customer.as_str(), &order.id).optional().await? {
                Some(_) => Ok(()),
                None => orders.create_item(order.customer.as_str(), order).await.map(drop),
            }
        }
        Err(error) => Err(error),
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example is there to be read")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = EmulatorConfig::default();
    config.regions = ["West US", "East US"].map(str::to_owned).to_vec().into();
    let account = Emulator::start(config).await?;
    let faults = FaultInjector::new(42);
    let client = CosmosClient::builder(Account::from_connection_string(&account.connection_string())?)
        .faults(&faults)
        .build()?;
    let orders = shop::orders(&client).await?;

    // Half of the creates lose their response, and the nearest region has no room for reads.
    faults.add(FaultRule::from_json(
        br#"{"id": "lost", "match": {"operations": ["create"]}, "share": 0.5, "effect": {"connection": "closeAfter"}}"#,
    )?)?;
    faults.add(FaultRule::status(503, 0).named("full").on(OperationKind::Read).in_region("West US"))?;

    for number in 0..20 {
        let order = order(&format!("o-{number}"), "ada", f64::from(number));
        place_order(&orders, &order).await?;
        assert_eq!(orders.read_item::<Order>("ada", &order.id).await?.value(), &order);
    }
    for report in faults.list() {
        let id = report.rule.id.unwrap_or_default();
        println!(
            "{id}: {} of {} requests failed, and every order was stored once",
            report.hits, report.matched
        );
    }
    assert!(faults.hits("lost") > Some(0) && faults.hits("full") > Some(0), "the faults did nothing");
    Ok(())
}
