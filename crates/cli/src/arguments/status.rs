//! `peri status`.

use super::Control;

const EXAMPLES: &str = "\
Examples:
  peri status                    regions and what they hold, at a glance
  peri status --json             everything the control port says about it, for scripts";

/// Show the regions, databases, containers and partitions of a running account
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) control: Control,
}
