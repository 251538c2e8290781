//! Why a fault rule is not accepted.

/// Why a rule is not accepted, with what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRule(String);

impl InvalidRule {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> InvalidRule {
        InvalidRule(message.into())
    }
}
