//! What is done, one file per command.

pub(crate) mod cert;
pub(crate) mod up;
