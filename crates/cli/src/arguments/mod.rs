//! What was typed, one file per command.

mod account;
mod cert;
mod chaos;
mod clock;
mod container_path;
mod control;
mod export;
mod fault;
mod import;
mod partition;
mod region;
mod requests;
mod snapshot;
mod status;
mod struck;
mod up;

pub(crate) use account::Account;
pub(crate) use cert::Cert;
pub(crate) use chaos::Chaos;
pub(crate) use clock::{Clock, ClockAction};
pub(crate) use container_path::ContainerPath;
pub(crate) use control::Control;
pub(crate) use export::Export;
pub(crate) use fault::{Fault, FaultAction, When};
pub(crate) use import::{Import, OnError};
pub(crate) use partition::{Partition, PartitionAction};
pub(crate) use region::{Lasting, Region, RegionAction};
pub(crate) use requests::Requests;
pub(crate) use snapshot::{Snapshot, SnapshotAction};
pub(crate) use status::Status;
pub(crate) use struck::Struck;
pub(crate) use up::Up;

/// Where to begin, and the exit codes where people look for them.
const AFTER_HELP: &str = "\
Examples:
  peri up                        an account on http(s)://localhost:8081, until Ctrl+C
  peri up --port 0 --json        for scripts: any free port, and one line of JSON that says which
  peri cert --out ca.pem         what https clients have to trust
  peri status                    what a running one holds, and where
  peri requests --follow         what is asked of it, as it happens
  peri region down eastus        see who notices; up brings it back
  peri fault status 429          make requests fail, all or some of them
  peri snapshot save clean       something to come back to between tests
  peri clock advance 1h          see what expires, without waiting
  peri import shop/items a.csv   items for a container, from a file
  peri chaos                     steady work while everything goes wrong, and what came of it

Exit codes:
  0  ended as asked, also by SIGINT or SIGTERM
  1  failed for a reason not listed here
  2  the command line makes no sense
  3  a port is already in use
  4  the system does not let it listen there
  5  nothing answers on the control port or at the account
  6  the running `peri up` or the account refused what was asked
  7  some items were not imported
  8  the data directory cannot be opened
  9  a promise was broken under `peri chaos`
  130  a signal cut a run of `peri chaos` short, or was the second one";

/// A Cosmos DB account on this machine, for any official SDK.
#[derive(Debug, clap::Parser)]
#[command(name = "peri", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    /// Say more on stderr: -v what happens, -vv each connection; RUST_LOG overrides it
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 100)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Up(Up),
    Cert(Cert),
    Status(Status),
    Requests(Requests),
    Region(Region),
    Fault(Box<Fault>),
    Partition(Partition),
    Snapshot(Snapshot),
    Clock(Clock),
    Import(Import),
    Export(Export),
    Chaos(Chaos),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }
}
