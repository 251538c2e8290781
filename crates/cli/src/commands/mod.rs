//! What is done, one file per command.

pub(crate) mod up;
