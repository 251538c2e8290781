//! What the caller can see afterwards: every attempt, and why the next step was taken.

/// What happened during one operation.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {}
