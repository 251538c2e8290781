//! The command lines of `peri durable cancel` and `raise`.

use super::DurableOptions;

const CANCEL_EXAMPLES: &str = "\
Examples:
  peri durable cancel order-17
  peri durable cancel order-17 order-18 --reason \"the customer withdrew\"

The instance fails with the reason, and its sub-orchestrations are cancelled, as soon as a runtime processes the request.";

/// Cancel instances and their sub-orchestrations
#[derive(Debug, clap::Args)]
#[command(after_help = CANCEL_EXAMPLES)]
pub(crate) struct DurableCancel {
    /// Ids of the instances
    #[arg(value_name = "ID", required = true)]
    pub(crate) instances: Vec<String>,

    /// Why they are cancelled
    #[arg(long, value_name = "TEXT", default_value = "cancelled by an operator")]
    pub(crate) reason: String,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}

const RAISE_EXAMPLES: &str = "\
Examples:
  peri durable raise order-17 Approved true
  peri durable raise order-17 Address '{\"city\":\"Bern\"}'     typed events are JSON
  peri durable raise order-17 items '\"tea\"' --queue           the message stays until it is taken

An event is for the instance that waits for it; `peri durable why` says which it waits for. DATA is sent as it is given.";

/// Raise an event that an instance waits for, or put a message into one of its queues
#[derive(Debug, clap::Args)]
#[command(after_help = RAISE_EXAMPLES)]
pub(crate) struct DurableRaise {
    /// Id of the instance
    #[arg(value_name = "ID")]
    pub(crate) instance: String,

    /// Name of the event or queue
    #[arg(value_name = "EVENT")]
    pub(crate) event: String,

    /// What is sent with it
    #[arg(value_name = "DATA", default_value = "")]
    pub(crate) data: String,

    /// Put a message into the queue of that name
    #[arg(long)]
    pub(crate) queue: bool,

    #[command(flatten)]
    pub(crate) options: DurableOptions,
}
