//! The command line of `peri snapshot`.

use super::ControlOptions;

const EXAMPLES: &str = "\
Examples:
  peri snapshot save clean       save the whole account as it is now
  peri snapshot restore clean    restore it, for example before each test
  peri snapshot list             list the snapshots
  peri snapshot rm clean         delete the snapshot

Saving and restoring take constant time, whatever the size of the account. A snapshot is in memory: it ends with the
process, and the memory of the data it refers to is freed only after it is deleted. With --data-dir, a restored state
survives kill -9 as a whole; restoring writes the differences to the disk.";

/// Save snapshots of the whole account and restore them
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    pub(crate) action: SnapshotAction,

    #[command(flatten)]
    pub(crate) control: ControlOptions,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum SnapshotAction {
    /// Save the account under a name; a snapshot with the same name is replaced
    Save {
        /// Name of the snapshot
        name: String,
    },
    /// Restore the account from a snapshot
    Restore {
        /// Name of the snapshot
        name: String,
    },
    /// List the snapshots of the account
    List,
    /// Delete a snapshot by its name
    Rm {
        /// Name of the snapshot
        name: String,
    },
}
