//! The command line of `peri partition`.

use emulator::clock::HumanDuration;

use super::{ContainerPath, ControlOptions};

const EXAMPLES: &str = "\
Examples:
  peri partition list                       show all partitions with their size and usage
  peri partition list shop/items            show the partitions of one container
  peri partition split shop/items 0         split range 0 in the middle
  peri partition split shop/items 0 --hold 2s   respond with 410/1007 for two seconds, then split
  peri partition merge shop/items 1 2       merge two adjacent ranges
  peri partition failover shop/items 0 'East US'   move the writes of range 0; needs peri up --partition-failover

While a split is held, every request to the range gets 410/1007, and the list of ranges shows it as splitting. Without
--hold requests wait for the swap, as behind the service's gateway, and none is refused.

A request to a range that no longer exists gets 410/1002, and the client reads the ranges again. Continuations
and change feeds from before a split or merge remain valid.";

/// List, split, merge and fail over the physical partitions of a container
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Partition {
    #[command(subcommand)]
    pub(crate) action: PartitionAction,

    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum PartitionAction {
    /// Show the partitions with their size and usage
    List {
        /// Only the partitions of this container, DATABASE/CONTAINER
        container: Option<ContainerPath>,
    },
    /// Split a range in two
    Split {
        /// The container, written as DATABASE/CONTAINER
        container: ContainerPath,
        /// Id of the range
        range: u32,
        /// Effective partition key of the split, in hexadecimal [default: the middle]
        #[arg(long, value_name = "EPK")]
        at: Option<String>,
        /// Respond to every request to the range with 410/1007 for this time, then split it
        #[arg(long, value_name = "DURATION")]
        hold: Option<HumanDuration>,
    },
    /// Merge ranges that are adjacent to each other
    Merge {
        /// The container, written as DATABASE/CONTAINER
        container: ContainerPath,
        /// Ids of the ranges
        #[arg(required = true, num_args = 2..)]
        ranges: Vec<u32>,
    },
    /// Move the writes of one range to another region
    Failover {
        /// The container, written as DATABASE/CONTAINER
        container: ContainerPath,
        /// Id of the range
        range: u32,
        /// Region that accepts the writes of the range from now on
        region: String,
    },
}
