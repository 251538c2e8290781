//! The error of a scenario that cannot be executed.

/// Why a scenario cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidScenario(String);

impl InvalidScenario {
    pub(crate) fn new(message: impl Into<String>) -> InvalidScenario {
        InvalidScenario(message.into())
    }
}
