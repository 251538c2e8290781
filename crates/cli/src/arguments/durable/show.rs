//! The command lines of `peri durable show`, `history` and `why`.

use super::DurableOptions;

const SHOW_EXAMPLES: &str = "\
Examples:
  peri durable show order-17              status, executions, sizes, and what waits
  peri durable show order-17 --timeline   also draw the activities, timers, events and sub-orchestrations over time
  peri durable show order-17 --timeline --execution 3
  peri durable show order-17 --json | jq .historyBytes

In a timeline, █ is an activity, ▒ a timer, ▓ a sub-orchestration and ░ an event or queue; a bar ends with ✗ if it failed, with ○ if
it was cancelled, and with → if it goes on.";

/// Show everything about an instance but its events: status, executions, family, sizes, what waits
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub(crate) struct DurableShow {
    /// Id of the instance
    #[arg(value_name = "ID")]
    pub(crate) instance: String,

    /// Draw the execution over time
    #[arg(long)]
    pub(crate) timeline: bool,

    /// Execution to draw [default: the current one]
    #[arg(long, value_name = "N", requires = "timeline")]
    pub(crate) execution: Option<u64>,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}

const HISTORY_EXAMPLES: &str = "\
Examples:
  peri durable history order-17
  peri durable history order-17 --execution 1     the first execution, before it continued as new
  peri durable history order-17 --json            one event per line, as it is stored

Inputs and results are cut in the table; --json has all of them. If an event cannot be read, the others are shown all the same
and the exit code is 1.";

/// Show the events of an execution
#[derive(Debug, clap::Args)]
#[command(after_help = HISTORY_EXAMPLES)]
pub(crate) struct DurableHistory {
    /// Id of the instance
    #[arg(value_name = "ID")]
    pub(crate) instance: String,

    /// Number of the execution [default: the current one]
    #[arg(long, value_name = "N")]
    pub(crate) execution: Option<u64>,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}

const WHY_EXAMPLES: &str = "\
Examples:
  peri durable why order-17
  peri durable why order-17 --json | jq .lock

Findings marked ! keep the instance from moving and do not end by themselves. A lock names the host and process that have it.";

/// Say why an instance does not move: locks, attempts, what waits and since when, errors
#[derive(Debug, clap::Args)]
#[command(after_help = WHY_EXAMPLES)]
pub(crate) struct DurableWhy {
    /// Id of the instance
    #[arg(value_name = "ID")]
    pub(crate) instance: String,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}
