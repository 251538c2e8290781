//! Outages of the first region of three, for two minutes each: what reads make of them, with hedging and without.

use std::time::Duration;

use perihelion::{DriverOptions, HedgingOptions, OperationOptions, RegionOptions};
use perihelion_driver::operation::ContainerName;
use tokio::runtime::Runtime;

use crate::load::{self, Rate, Supply, Work};
use crate::options::Options;
use crate::ordered::fill;
use crate::peri::{DATABASE, Peri, Program};
use crate::points::READS;
use crate::subject::{self, Perihelion, Wire, Worker};

const REGIONS: [&str; 3] = ["West US", "East US", "North Europe"];
const IN_FLIGHT: usize = 32;

/// How long an outage is measured apart, as the time in which the driver learns of it.
pub const LEARNING: Duration = Duration::from_secs(3);

/// Outages by their names, and the commands of `peri` that begin them.
const OUTAGES: [(&str, &[&str]); 2] = [
    ("slow by 500 ms", &["region", "slow", REGIONS[0], "500ms"]),
    ("black hole", &["region", "down", REGIONS[0], "--as", "black-hole"]),
];

/// The reads of one run before and during an outage.
#[derive(Clone, Copy, Debug)]
pub struct OutageRates {
    /// Before the outage.
    pub healthy: Rate,
    /// In the first [`LEARNING`] of the outage.
    pub learning: Rate,
    /// From then on, to the end of the outage.
    pub outage: Rate,
}

/// One kind of outage, with hedging and without.
#[derive(Clone, Debug)]
pub struct Outage {
    /// What happens to the region.
    pub name: &'static str,
    /// How long the outage lasted.
    pub duration: Duration,
    /// With hedging, and without.
    pub runs: [OutageRates; 2],
}

impl Outage {
    /// The 99th percentile during the outage with hedging, as a share of the one without.
    pub fn p99_ratio(&self) -> f64 {
        self.runs[0].outage.p99_us / self.runs[1].outage.p99_us
    }

    /// The median during the outage as a share of the one before it, with hedging (0) or without (1).
    pub fn median_ratio(&self, at: usize) -> f64 {
        self.runs[at].outage.p50_us / self.runs[at].healthy.p50_us
    }
}

/// Reads while all is well, then during each outage. A read that fails ends the measurement with an error.
pub fn measure(options: &Options, program: &Program) -> Result<Vec<Outage>, String> {
    let duration = Duration::from_secs(if options.quick { 20 } else { 120 });
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let mut outages = Vec::new();
    for (name, command) in OUTAGES {
        let run = |hedging| runtime.block_on(reads(program, command, hedging, duration));
        outages.push(Outage { name, duration, runs: [run(true)?, run(false)?] });
    }
    Ok(outages)
}

async fn reads(
    program: &Program,
    command: &[&str],
    hedging: bool,
    duration: Duration,
) -> Result<OutageRates, String> {
    let peri = Peri::start(program, &REGIONS.join(","))?;
    fill(&peri, READS, load::ITEMS).await?;
    // What was written is everywhere after a lag of 50 ms.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (mut workers, supply) = (workers(&peri, hedging)?, Supply::new());
    load::run(&mut workers, Work::Read, &supply, Duration::from_secs(1)).await?;
    let healthy = load::run(&mut workers, Work::Read, &supply, Duration::from_secs(2)).await?;
    peri.command(command)?;
    let learning = load::run(&mut workers, Work::Read, &supply, LEARNING).await?;
    let outage = load::run(&mut workers, Work::Read, &supply, duration - LEARNING).await?;
    Ok(OutageRates { healthy, learning, outage })
}

fn workers(peri: &Peri, hedging: bool) -> Result<Vec<Worker>, String> {
    let operation = OperationOptions::new()
        .with_hedging(HedgingOptions::new().with_enabled(hedging))
        .with_regions(RegionOptions::new().with_preferred(REGIONS));
    let driver =
        subject::perihelion_driver(Wire::Http2, peri, DriverOptions::new().with_operation(operation))?;
    let one = Perihelion::on(driver, ContainerName::new(DATABASE, READS));
    Ok((0..IN_FLIGHT).map(|_| Worker::Perihelion(one.clone())).collect())
}
