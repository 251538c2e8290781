//! `peri region`.

use emulator::clock::Span;
use emulator::faults::{Delay, DownMode};
use emulator::regions::Lag;

use super::Control;

const EXAMPLES: &str = "\
Examples:
  peri region list                                   who writes, what is wrong, and how far behind they may be
  peri region down \"East US\" --for 30s               connections are refused, open ones are reset
  peri region down \"East US\" --as black-hole         nobody answers; --as 503 answers that
  peri region drain \"East US\"                        403/1008, while it is still listed
  peri region slow \"East US\" 200ms                   or 10ms..50ms, or p50=20ms,p99=800ms
  peri region storm \"East US\" --share 0.5            429/3200 for half of the requests
  peri region up \"East US\"                           end any of these
  peri region failover \"East US\"                     it writes now; the one before answers 403/3
  peri region lag 20ms..50ms                         between all regions, drawn anew for each commit
  peri region lag 2s --from \"West US\" --to \"East US\"  one way only
  peri region pause \"East US\"                        it sees nothing new
  peri region resume \"East US\"                       until now

A region that is behind answers with what it has: a client that has seen more gets 404/1002 there.";

/// Look at the regions, take them down and up, and change how far apart they are
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Region {
    #[command(subcommand)]
    pub(crate) action: RegionAction,

    #[command(flatten)]
    pub(crate) control: Control,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum RegionAction {
    /// Show the regions in failover order
    List,
    /// Take a region down: refused, black-holed, or answering 503
    Down {
        /// Its name, however it is spaced and capitalised: 'East US', eastus
        name: String,
        /// How: refused, black-hole or 503
        #[arg(long = "as", value_name = "HOW", default_value = "refused")]
        how: DownMode,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// End whatever is wrong with a region
    Up {
        /// Its name, however it is spaced and capitalised: 'East US', eastus
        name: String,
    },
    /// Answer 403/1008, as a region does that is being removed
    Drain {
        /// Its name, however it is spaced and capitalised: 'East US', eastus
        name: String,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Make every request to a region wait
    Slow {
        /// Its name, however it is spaced and capitalised: 'East US', eastus
        name: String,
        /// How long: 200ms, a range 10ms..50ms, or a distribution p50=20ms,p99=200ms
        by: Delay,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Throttle every request to a region with 429/3200
    Storm {
        /// Its name, however it is spaced and capitalised: 'East US', eastus
        name: String,
        /// What clients are told to wait
        #[arg(long, value_name = "TIME", default_value = "100ms")]
        retry_after: Span,
        /// A share of the requests, by chance: 0.5
        #[arg(long, value_name = "0..1")]
        share: Option<f64>,
        #[command(flatten)]
        lasting: Lasting,
    },
    /// Make a region the one that writes
    Failover {
        /// Its name, however it is spaced and capitalised: 'East US', eastus
        name: String,
    },
    /// Set how long commits take from one region to another
    Lag {
        /// How long: 30ms, or a range to draw from, 20ms..50ms; 0 means at once
        lag: Lag,
        /// Only commits of this region
        #[arg(long, value_name = "NAME")]
        from: Option<String>,
        /// Only on their way to this region
        #[arg(long, value_name = "NAME")]
        to: Option<String>,
    },
    /// Keep everything new from a region
    Pause {
        /// Its name, however it is spaced and capitalised: 'East US', eastus
        name: String,
    },
    /// Let a paused region catch up
    Resume {
        /// Its name, however it is spaced and capitalised: 'East US', eastus
        name: String,
    },
}

/// How long something lasts.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Lasting {
    /// For this time, then it ends by itself
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasting: Option<Span>,
}
