//! The command line of `peri events`.

use super::ControlOptions;

const EXAMPLES: &str = "\
Examples:
  peri events                          show the last twenty events
  peri events --follow                 also show new events, until Ctrl+C
  peri events --kind split             show the splits of partitions
  peri events --region \"East US\"      show what happened to one region
  peri events --follow --json          print one line of JSON for each event

Events are what was done to the account and what that caused: regions that went down and came up, failovers, splits and
merges, faults, snapshots, and the recovery from disk. The last thousand are remembered; `peri up -v` logs all of them.";

/// Show what was done to a running account and what that caused: outages, failovers, splits, snapshots
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Events {
    /// Also show new events, until Ctrl+C
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Largest number of events
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Only of this kind, as the output names it: regionDown, failover, split
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,

    /// Only about this region
    #[arg(long, value_name = "NAME")]
    pub(crate) region: Option<String>,

    #[command(flatten)]
    pub(crate) control: ControlOptions,
}
