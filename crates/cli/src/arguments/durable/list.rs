//! The command line of `peri durable list`.

use super::{DurableOptions, SelectionOptions};

const EXAMPLES: &str = "\
Examples:
  peri durable list                                  show the newest instances
  peri durable list --status failed --created-since 1d
  peri durable list --name Order --limit 1000 --json | jq -r .instanceId
  peri durable list --parent order-17                show the sub-orchestrations of an instance
  peri durable list --status pending                 show instances that no runtime has begun with

With --json, each instance is a line. Times are UTC, and milliseconds since 1970 in JSON.";

/// List instances, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DurableList {
    #[command(flatten)]
    pub(crate) selection: SelectionOptions,

    /// Largest number of instances
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}
