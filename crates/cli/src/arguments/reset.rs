//! The command line of `peri reset`.

use super::ControlOptions;

const EXAMPLES: &str = "\
Examples:
  peri reset                     ask, then delete every database
  peri reset --yes               delete every database without asking, for scripts

Snapshots, fault rules, regions and the clock stay as they are; `peri snapshot restore`, `peri fault clear`,
`peri region up` and `peri clock reset` are for those.";

/// Delete all databases of a running account
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Reset {
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) control: ControlOptions,
}
