//! The command line of `peri status`.

use super::ControlOptions;

const EXAMPLES: &str = "\
Examples:
  peri status                    show the regions and containers as tables
  peri status --json             print the whole topology as JSON, for scripts";

/// Show the regions, databases, containers and partitions of a running account
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) control: ControlOptions,
}
