//! Why an operation failed, in terms of what the caller can do next.

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[error("operation failed")]
pub struct Error {}
