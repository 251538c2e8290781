//! `peri snapshot`.

use super::Control;

const EXAMPLES: &str = "\
Examples:
  peri snapshot save clean       keep the whole account as it is now
  peri snapshot restore clean    and make it so again, before each test
  peri snapshot list
  peri snapshot rm clean

Saving and restoring take no time, whatever the account holds. A snapshot is in memory: it ends with
the process, and keeps what it refers to from being freed until it is removed. With --data-dir, what
was restored is there after kill -9 as a whole, and restoring writes what had changed since.";

/// Keep copies of the whole account, and come back to them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    pub(crate) action: SnapshotAction,

    #[command(flatten)]
    pub(crate) control: Control,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum SnapshotAction {
    /// Keep the account as it is under a name, in the place of what was there
    Save {
        /// What to call it
        name: String,
    },
    /// Make the account as it was
    Restore {
        /// What it is called
        name: String,
    },
    /// Show the snapshots there are
    List,
    /// Forget one
    Rm {
        /// What it is called
        name: String,
    },
}
