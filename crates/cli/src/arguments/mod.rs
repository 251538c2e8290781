//! The command line, one file per command.

mod account;
mod cert;
mod chaos;
mod clock;
mod completions;
mod container_path;
mod control;
mod durable;
mod events;
mod export;
mod fault;
mod import;
mod partition;
mod query;
mod region;
mod request_filter;
mod requests;
mod reset;
mod snapshot;
mod status;
mod up;

pub(crate) use account::AccountOptions;
pub(crate) use cert::Cert;
pub(crate) use chaos::{Chaos, Switch};
pub(crate) use clock::{Clock, ClockAction};
pub(crate) use completions::Completions;
pub(crate) use container_path::ContainerPath;
pub(crate) use control::ControlOptions;
pub(crate) use durable::{
    Durable, DurableAction, DurableCancel, DurableHistory, DurableList, DurableOptions, DurablePurge,
    DurableRaise, DurableRetry, DurableShow, DurableTail, DurableWhy,
};
pub(crate) use events::Events;
pub(crate) use export::Export;
pub(crate) use fault::{CloseTime, Fault, FaultAction};
pub(crate) use import::{Import, OnError};
pub(crate) use partition::{Partition, PartitionAction};
pub(crate) use query::Query;
pub(crate) use region::{DurationOption, Region, RegionAction};
pub(crate) use request_filter::RequestFilter;
pub(crate) use requests::Requests;
pub(crate) use reset::Reset;
pub(crate) use snapshot::{Snapshot, SnapshotAction};
pub(crate) use status::Status;
pub(crate) use up::{Entra, Up};

/// Examples and exit codes.
const AFTER_HELP: &str = "\
Examples:
  peri up                        run an account on http(s)://localhost:8081, until Ctrl+C
  peri up --port 0 --json        use any free port, and print it as one line of JSON, for scripts
  peri cert --out ca.pem         save the certificate that https clients have to trust
  peri status                    show the regions and containers of a running account
  peri requests --follow         show requests as they happen
  peri events --follow           show what happens to the account: outages, failovers, splits
  peri region down eastus        take a region down; `peri region up` brings it back
  peri fault status 429          make requests fail
  peri snapshot save clean       save the account, to restore it between tests
  peri clock advance 1h          move the clock forward, to test what expires
  peri import shop/items a.csv   import items from a file
  peri query shop/items \"SELECT * FROM c WHERE c.price < 10\"
  peri durable why order-17      say why an orchestration does not move
  peri chaos                     run a workload while faults begin and end, and check its guarantees

Exit codes:
  0  success, also after a stop by SIGINT or SIGTERM
  1  failure for a reason that is not listed here
  2  the command line is invalid
  3  a port is already in use
  4  the system does not allow listening on the address
  5  the control port or the account does not respond
  6  the control port or the account rejected the request
  7  some items were not imported, or some instances not purged or retried
  8  the data directory cannot be opened
  9  `peri chaos` found a violation of a guarantee
  130  a signal interrupted `peri chaos`, or a second signal ended a stop";

/// A Cosmos DB account on this machine, for any official SDK.
#[derive(Debug, clap::Parser)]
#[command(name = "peri", version, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Log more to stderr: -v for events, -vv for each connection; RUST_LOG overrides it
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
    Events(Events),
    Region(Region),
    Fault(Box<Fault>),
    Partition(Partition),
    Snapshot(Snapshot),
    Clock(Clock),
    Import(Import),
    Export(Export),
    Query(Query),
    Reset(Reset),
    Chaos(Chaos),
    Durable(Box<Durable>),
    Completions(Completions),
    /// Print the version of `peri`
    Version,
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
