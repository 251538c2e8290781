//! The command line of `peri durable`.

mod list;
mod messages;
mod purge;
mod retry;
mod selection;
mod show;
mod tail;

pub(crate) use list::DurableList;
pub(crate) use messages::{DurableCancel, DurableRaise};
pub(crate) use purge::DurablePurge;
pub(crate) use retry::DurableRetry;
pub(crate) use selection::SelectionOptions;
pub(crate) use show::{DurableHistory, DurableShow, DurableWhy};
pub(crate) use tail::DurableTail;

use super::AccountOptions;

const EXAMPLES: &str = "\
Examples:
  peri durable list --status running             show the instances that run, the newest first
  peri durable show order-17 --timeline          draw what an instance has waited for
  peri durable why order-17                      say why an instance does not move
  peri durable raise order-17 Approved true      raise an event that it waits for
  peri durable cancel order-17 --reason \"fraud\"
  peri durable purge --ended-before 30d --yes    delete what ended a month ago
  peri durable retry --rate 5                    give stuck work another try
  peri durable tail                              show what happens, until Ctrl+C

The commands use the container that runtimes with perihelion-durable store their orchestrations in: duroxide/duroxide of the
local account, unless --database, --container and --connection-string say otherwise. They never create it.";

/// Look at durable orchestrations and operate them: list, show, why, cancel, raise, purge, retry
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Durable {
    #[command(subcommand)]
    pub(crate) action: DurableAction,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum DurableAction {
    List(DurableList),
    Show(DurableShow),
    History(DurableHistory),
    Why(DurableWhy),
    Cancel(DurableCancel),
    Raise(DurableRaise),
    Purge(DurablePurge),
    Retry(DurableRetry),
    Tail(DurableTail),
}

/// The container that the orchestrations are stored in, and the format of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct DurableOptions {
    /// Database of the orchestrations
    #[arg(
        long,
        env = "COSMOSDB_DATABASE",
        default_value = "duroxide",
        value_name = "NAME",
        hide_env_values = true,
        display_order = 80
    )]
    pub(crate) database: String,

    /// Container of the orchestrations
    #[arg(
        long,
        env = "COSMOSDB_CONTAINER",
        default_value = "duroxide",
        value_name = "NAME",
        hide_env_values = true,
        display_order = 80
    )]
    pub(crate) container: String,

    #[command(flatten)]
    pub(crate) account: AccountOptions,

    /// Print JSON on stdout
    #[arg(long, display_order = 91)]
    pub(crate) json: bool,
}
