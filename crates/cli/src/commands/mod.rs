//! The commands, one file each.

pub(crate) mod cert;
pub(crate) mod chaos;
pub(crate) mod clock;
pub(crate) mod completions;
pub(crate) mod durable;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod fault;
pub(crate) mod import;
pub(crate) mod partition;
pub(crate) mod query;
pub(crate) mod region;
pub(crate) mod requests;
pub(crate) mod reset;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod up;

use crate::exit::CommandError;

/// The Tokio runtime of commands that use an account.
fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::other(format!("cannot wait for sockets: {error}")))
}
