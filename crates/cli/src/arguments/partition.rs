//! `peri partition`.

use emulator::clock::HumanDuration;

use super::{ContainerPath, Control};

const EXAMPLES: &str = "\
Examples:
  peri partition list                       every partition: what it holds, and what it was asked
  peri partition list shop/items            those of one container
  peri partition split shop/items 0         range 0 becomes two, in the middle
  peri partition split shop/items 0 --hold 2s   for two seconds, clients of the range get 410/1007 first
  peri partition merge shop/items 1 2       two neighbours become one
  peri partition failover shop/items 0 'East US'   its writes move; of an account up with --partition-failover

Clients that still ask for a range that is gone get 410/1002 and read the ranges again. Continuations
and change feeds taken before remain valid.";

/// List, split, merge and move the physical partitions of a container
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Partition {
    #[command(subcommand)]
    pub(crate) action: PartitionAction,

    #[command(flatten)]
    pub(crate) control: Control,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PartitionAction {
    /// Show the partitions and what they hold
    List {
        /// Only those of this container, DATABASE/CONTAINER
        container: Option<ContainerPath>,
    },
    /// Split a range in two
    Split {
        /// DATABASE/CONTAINER
        container: ContainerPath,
        /// The id of the range
        range: u32,
        /// Where, as an effective partition key in hexadecimal [default: in the middle]
        #[arg(long, value_name = "EPK")]
        at: Option<String>,
        /// Keep clients of the range waiting (410/1007) for so long before
        #[arg(long, value_name = "DURATION")]
        hold: Option<HumanDuration>,
    },
    /// Merge ranges that are next to each other
    Merge {
        /// DATABASE/CONTAINER
        container: ContainerPath,
        /// The ids of the ranges
        #[arg(required = true, num_args = 2..)]
        ranges: Vec<u32>,
    },
    /// Move the writes of one range to another region
    Failover {
        /// DATABASE/CONTAINER
        container: ContainerPath,
        /// The id of the range
        range: u32,
        /// The region that takes its writes from now on
        region: String,
    },
}
