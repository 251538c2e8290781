//! What is done, one file per command.

pub(crate) mod cert;
pub(crate) mod clock;
pub(crate) mod fault;
pub(crate) mod partition;
pub(crate) mod region;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod up;
