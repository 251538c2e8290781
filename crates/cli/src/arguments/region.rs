//! The command line of `peri region`.

use emulator::clock::HumanDuration;
use emulator::faults::{Delay, DownMode};
use emulator::regions::Lag;

use super::ControlOptions;

const EXAMPLES: &str = "\
Examples:
  peri region list                                   show the regions with their state and replication lag
  peri region down \"East US\" --for 30s               refuse connections and reset open ones, for 30 seconds
  peri region down \"East US\" --as black-hole         never respond; --as 503 responds with 503
  peri region drain \"East US\"                        respond with 403/1008 while the region is still listed
  peri region slow \"East US\" 200ms                   delay requests; also 10ms..50ms, or p50=20ms,p99=800ms
  peri region storm \"East US\" --share 0.5            throttle half of the requests with 429/3200
  peri region up \"East US\"                           end all of these
  peri region add \"East US\"                          add a region while the account runs
  peri region failover \"East US\"                     make it the write region; the former one returns 403/3
  peri region lag 20ms..50ms                         set the replication lag, drawn again for each commit
  peri region lag 2s --from \"West US\" --to \"East US\"  set the lag in one direction
  peri region pause \"East US\"                        stop replication to the region
  peri region resume \"East US\"                       let the region catch up

A region that lags returns the data that it has. A client whose session has seen newer data gets 404/1002 there.";

/// Show the regions, add one, take them down and up, fail over, and set the replication lag
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Region {
    #[command(subcommand)]
    pub(crate) action: RegionAction,

    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum RegionAction {
    /// Show the regions in failover order
    List,
    /// Take a region down: refuse connections, never respond, or respond with 503
    Down {
        /// Name of the region; spaces and capitals do not matter: 'East US', eastus
        name: String,
        /// What clients see: refused, black-hole or 503
        #[arg(long = "as", value_name = "HOW", default_value = "refused")]
        how: DownMode,
        #[command(flatten)]
        duration: DurationOption,
    },
    /// End all faults of a region
    Up {
        /// Name of the region; spaces and capitals do not matter: 'East US', eastus
        name: String,
    },
    /// Respond with 403/1008, as a region does that is being removed
    Drain {
        /// Name of the region; spaces and capitals do not matter: 'East US', eastus
        name: String,
        #[command(flatten)]
        duration: DurationOption,
    },
    /// Delay every request to a region
    Slow {
        /// Name of the region; spaces and capitals do not matter: 'East US', eastus
        name: String,
        /// Delay: 200ms, a range 10ms..50ms, or a distribution p50=20ms,p99=200ms
        by: Delay,
        #[command(flatten)]
        duration: DurationOption,
    },
    /// Throttle requests to a region with 429/3200
    Storm {
        /// Name of the region; spaces and capitals do not matter: 'East US', eastus
        name: String,
        /// Wait that the responses ask for
        #[arg(long, value_name = "TIME", default_value = "100ms")]
        retry_after: HumanDuration,
        /// Only this share of the requests, chosen at random: 0.5
        #[arg(long, value_name = "0..1")]
        share: Option<f64>,
        #[command(flatten)]
        duration: DurationOption,
    },
    /// Add a region, the last in failover order, or list a removed one again
    Add {
        /// Name of the region, as clients see it: 'East US'
        name: String,
    },
    /// Make a region the write region
    Failover {
        /// Name of the region; spaces and capitals do not matter: 'East US', eastus
        name: String,
    },
    /// Set the replication lag between regions
    Lag {
        /// Lag: 30ms, or a range to draw from, 20ms..50ms; 0 replicates at once
        lag: Lag,
        /// Only from this region
        #[arg(long, value_name = "NAME")]
        from: Option<String>,
        /// Only to this region
        #[arg(long, value_name = "NAME")]
        to: Option<String>,
    },
    /// Stop replication to a region
    Pause {
        /// Name of the region; spaces and capitals do not matter: 'East US', eastus
        name: String,
    },
    /// Let a paused region catch up
    Resume {
        /// Name of the region; spaces and capitals do not matter: 'East US', eastus
        name: String,
    },
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct DurationOption {
    /// End after this time
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<HumanDuration>,
}
