//! The command line of `peri durable tail`.

use emulator::clock::HumanDuration;

use super::DurableOptions;

const EXAMPLES: &str = "\
Examples:
  peri durable tail                        show instances that begin, continue as new and end, until Ctrl+C
  peri durable tail --failures             show failures only
  peri durable tail --name Order --json    print one line of JSON for each change

A poll is a query for instances that have changed since the last one. Instances that are deleted between two polls are not shown.";

/// Show what happens to instances: starts, ends and failures, until Ctrl+C or until the reader of the output ends
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DurableTail {
    /// Only orchestrations whose name begins so
    #[arg(long, value_name = "PREFIX")]
    pub(crate) name: Option<String>,

    /// Only instances whose id begins so
    #[arg(long, value_name = "PREFIX")]
    pub(crate) id: Option<String>,

    /// Only failures, and what was set aside because it cannot be read
    #[arg(long)]
    pub(crate) failures: bool,

    /// Time between two polls
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: HumanDuration,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}
