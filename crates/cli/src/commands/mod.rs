//! What is done, one file per command.

pub(crate) mod cert;
pub(crate) mod clock;
pub(crate) mod up;
