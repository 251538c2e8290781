//! An option that cannot be obeyed.

use thiserror::Error;

/// An option that cannot be obeyed: which one, and what it may be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("option `{option}`: {problem}")]
pub struct InvalidOption {
    /// Its name, such as `hedging.threshold`.
    pub option: &'static str,
    /// What it was and what it may be.
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
