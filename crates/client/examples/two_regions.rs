//! Reads and writes succeed while a region is down.
//!
//! ```text
//! cargo run -p perihelion --example two_regions
//! ```
//!
//! Starts an account in three regions, reads and writes steadily, takes the preferred region down for a while, and
//! shows which regions served the reads.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use emulator::faults::DownMode;
use emulator::{Emulator, EmulatorConfig};
use perihelion::{Account, ContainerProperties, CosmosClient, PartitionKeyDefinition};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

#[derive(Serialize, Deserialize)]
struct Reading {
    id: String,
    sensor: String,
    value: f64,
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "an example prints its results")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let mut config = EmulatorConfig::default();
    config.regions = ["West US", "East US", "North Europe"].map(str::to_owned).to_vec().into();
    let account = Emulator::start(config).await?;
    let client = CosmosClient::builder(Account::from_connection_string(&account.connection_string())?)
        .preferred_regions(["East US", "West US"])
        .timeout(Duration::from_secs(5))
        .build()?;
    client.create_database("plant").await?;
    let plant = client.database("plant");
    let key = PartitionKeyDefinition::hash("/sensor")?;
    plant.create_container(&ContainerProperties::new("readings", key)).await?;
    let readings = plant.container("readings");

    for (title, east_is_up) in [("all regions up", true), ("East US down", false), ("East US back", true)] {
        if east_is_up {
            account.region("East US")?.up()?;
        } else {
            account.region("East US")?.down(DownMode::Refused)?;
        }
        #[expect(clippy::disallowed_methods, reason = "the example measures")]
        let (started, mut done, mut slowest) = (Instant::now(), 0, Duration::ZERO);
        let mut served = BTreeMap::<String, u32>::new();
        while started.elapsed() < Duration::from_secs(1) {
            let id = format!("r-{done}");
            let reading = Reading { id: id.clone(), sensor: "boiler".to_owned(), value: f64::from(done) };
            #[expect(clippy::disallowed_methods, reason = "the example measures")]
            let started_at = Instant::now();
            readings.upsert_item("boiler", &reading).await?;
            let read = readings.read_item::<Reading>("boiler", &id).await?;
            slowest = slowest.max(started_at.elapsed());
            if let Some(last) = read.diagnostics().attempts().last() {
                *served.entry(last.endpoint.region().to_string()).or_default() += 1;
            }
            done += 1;
        }
        println!(
            "{title:<15} {done:>5} writes and reads, none failed; slowest pair {slowest:?}; reads by {served:?}"
        );
    }
    Ok(())
}
