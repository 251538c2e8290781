//! Why a definition is refused.

use thiserror::Error;

/// A definition the service would answer with 400, and what it would say.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct DefinitionError {
    /// For the error body.
    pub message: String,
}

/// The opening of messages about input that does not even have the right shape.
pub const INVALID_INPUT: &str = "One of the specified inputs is invalid";

/// A refusal with this message.
pub(crate) fn invalid(message: impl ToString) -> DefinitionError {
    DefinitionError { message: message.to_string() }
}
