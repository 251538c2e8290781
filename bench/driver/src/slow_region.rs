//! One slow region of three: what hedging makes of it.

use std::time::Duration;

use perihelion::{DriverOptions, HedgingOptions, OperationOptions, RegionOptions};
use perihelion_driver::operation::ContainerName;
use tokio::runtime::Runtime;

use crate::figures::median;
use crate::load::{self, Rate, Supply, Work};
use crate::options::Options;
use crate::ordered::fill;
use crate::peri::{DATABASE, Peri, Program};
use crate::points::READS;
use crate::subject::{self, Perihelion, Wire, Worker};

const REGIONS: [&str; 3] = ["West US", "East US", "North Europe"];
const IN_FLIGHT: usize = 32;

/// How slow the first region becomes.
pub const SLOW: &str = "500ms";

/// Latencies with hedging and without, round by round.
#[derive(Clone, Debug)]
pub struct Hedging {
    /// With, and without.
    pub rounds: Vec<[Rate; 2]>,
}

impl Hedging {
    /// The 99th percentile with hedging as a share of the one without: the median of the rounds.
    pub fn ratio(&self) -> f64 {
        median(self.rounds.iter().map(|[with, without]| with.p99_us / without.p99_us))
    }

    /// A value with hedging (0) or without (1): the median of the rounds.
    pub fn median(&self, at: usize, value: impl Fn(Rate) -> f64) -> f64 {
        median(self.rounds.iter().map(|round| value(round[at])))
    }
}

/// Reads while all is well, makes the first region slow, and reads on.
pub fn measure(options: &Options, program: &Program) -> Result<Hedging, String> {
    let peri = Peri::start(program, &REGIONS.join(","))?;
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        fill(&peri, READS, load::ITEMS).await?;
        // What was written is everywhere after a lag of 50 ms.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let (mut with, mut without) = (workers(&peri, true)?, workers(&peri, false)?);
        let supply = Supply::new();
        for workers in [&mut with, &mut without] {
            load::run(workers, Work::Read, &supply, Duration::from_secs(1)).await?;
        }
        peri.command(&["region", "slow", REGIONS[0], SLOW])?;
        let mut rounds = Vec::new();
        for _ in 0..if options.quick { 2 } else { 5 } {
            let time = Duration::from_secs(2);
            let with = load::run(&mut with, Work::Read, &supply, time).await?;
            rounds.push([with, load::run(&mut without, Work::Read, &supply, time).await?]);
        }
        Ok(Hedging { rounds })
    })
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
