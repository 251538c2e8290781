//! What is done, one file per command.

pub(crate) mod cert;
pub(crate) mod chaos;
pub(crate) mod clock;
pub(crate) mod export;
pub(crate) mod fault;
pub(crate) mod import;
pub(crate) mod partition;
pub(crate) mod region;
pub(crate) mod requests;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod up;

use crate::exit::Failure;

/// What commands that talk to an account wait on.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot wait for sockets: {error}")))
}
