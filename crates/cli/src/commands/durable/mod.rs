//! `peri durable`: looks at durable orchestrations and operates them.

mod format;
mod history;
mod list;
mod messages;
mod purge;
mod retry;
mod show;
mod tail;
mod timeline;
mod why;

use durable::operator::{Operator, OperatorError};

use crate::account;
use crate::arguments::{Durable, DurableAction, DurableOptions};
use crate::exit::CommandError;

/// Runs one of the commands.
pub(crate) fn run(durable: &Durable) -> Result<(), CommandError> {
    let runtime = super::runtime()?;
    match &durable.action {
        DurableAction::List(list) => runtime.block_on(Box::pin(list::run(list))),
        DurableAction::Show(show) => runtime.block_on(Box::pin(show::run(show))),
        DurableAction::History(history) => runtime.block_on(Box::pin(history::run(history))),
        DurableAction::Why(why) => runtime.block_on(Box::pin(why::run(why))),
        DurableAction::Cancel(cancel) => runtime.block_on(Box::pin(messages::cancel(cancel))),
        DurableAction::Raise(raise) => runtime.block_on(Box::pin(messages::raise(raise))),
        DurableAction::Purge(purge) => runtime.block_on(Box::pin(purge::run(purge))),
        DurableAction::Retry(retry) => runtime.block_on(Box::pin(retry::run(retry))),
        DurableAction::Tail(tail) => tail::run(tail, &runtime),
    }
}

/// Opens the container of the options, which must exist.
async fn open(options: &DurableOptions) -> Result<Operator, CommandError> {
    let client = account::client(&options.account.connection_string())?;
    Operator::open(&client, &options.database, &options.container).await.map_err(|error| failed(&error))
}

/// The error of a command whose operation failed.
fn failed(error: &OperatorError) -> CommandError {
    let rejected = CommandError::rejected(&error.to_string());
    match error {
        OperatorError::Request(error) => account::command_error(error),
        OperatorError::NoDatabase { .. } | OperatorError::NoContainer { .. } => rejected.hint(
            "name the container of the orchestrations with --database and --container; a runtime creates it when it starts",
        ),
        OperatorError::NoInstance { .. } => {
            rejected.hint("`peri durable list` shows the instances, `--status pending` those that have not begun")
        }
        _ => rejected,
    }
}
