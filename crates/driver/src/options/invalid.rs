//! The error of an option with an invalid value.

use thiserror::Error;

/// An option with an invalid value: its name, and the valid values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("option `{option}`: {problem}")]
pub struct InvalidOption {
    /// Its name, such as `hedging.threshold`.
    pub option: &'static str,
    /// The value, and the valid values.
    pub problem: String,
}

impl InvalidOption {
    pub(crate) fn new(option: &'static str, problem: impl Into<String>) -> InvalidOption {
        InvalidOption { option, problem: problem.into() }
    }

    /// Rejects a duration of zero.
    pub(crate) fn unless_positive(
        option: &'static str,
        duration: std::time::Duration,
    ) -> Result<std::time::Duration, InvalidOption> {
        if duration.is_zero() {
            return Err(InvalidOption::new(option, "is zero and must be longer"));
        }
        Ok(duration)
    }
}
