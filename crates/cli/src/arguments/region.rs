//! `peri region`.

use emulator::regions::Lag;

use super::Control;

const EXAMPLES: &str = "\
Examples:
  peri region list                                   who writes, and how far behind the others may be
  peri region lag 20ms..50ms                         between all regions, drawn anew for each commit
  peri region lag 2s --from \"West US\" --to \"East US\"  one way only
  peri region pause \"East US\"                        it sees nothing new
  peri region resume \"East US\"                       until now

A region that is behind answers with what it has: a client that has seen more gets 404/1002 there.";

/// Look at the regions, and change how far apart they are
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
