//! The error of an invalid resource definition, with the message of the service.

use thiserror::Error;

/// An invalid definition, which the service rejects with status 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct DefinitionError {
    /// The message of the response body.
    pub message: String,
}

/// How messages about malformed input begin.
pub const INVALID_INPUT: &str = "One of the specified inputs is invalid";

/// The error with this message.
pub(crate) fn invalid(message: impl ToString) -> DefinitionError {
    DefinitionError { message: message.to_string() }
}
