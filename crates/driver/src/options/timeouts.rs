//! Options of timeouts, for operations and single requests.

use std::time::Duration;

use super::InvalidOption;

/// Options of timeouts; unset ones come from the next layer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TimeoutOptions {
    /// Overrides [`TimeoutSettings::end_to_end`] if it is set.
    pub end_to_end: Option<Duration>,
    /// Overrides [`TimeoutSettings::attempt`] if it is set.
    pub attempt: Option<Duration>,
    /// Overrides [`TimeoutSettings::metadata_attempt`] if it is set.
    pub metadata_attempt: Option<Duration>,
}

/// The resolved timeouts of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeoutSettings {
    /// The whole operation: every attempt, wait and look-up in between. Default: 60 s.
    pub end_to_end: Duration,
    /// One request for items, from connecting to the last byte. Default: 10 s.
    pub attempt: Duration,
    /// One request for metadata (account, container, ranges, plans). Default: 5 s.
    pub metadata_attempt: Duration,
}

impl Default for TimeoutSettings {
    fn default() -> TimeoutSettings {
        TimeoutSettings {
            end_to_end: Duration::from_secs(60),
            attempt: Duration::from_secs(10),
            metadata_attempt: Duration::from_secs(5),
        }
    }
}

impl TimeoutOptions {
    /// Options that set nothing.
    pub fn new() -> TimeoutOptions {
        TimeoutOptions::default()
    }

    /// Sets the value of [`TimeoutSettings::end_to_end`].
    #[must_use]
    pub fn with_end_to_end(self, timeout: Duration) -> TimeoutOptions {
        TimeoutOptions { end_to_end: Some(timeout), ..self }
    }

    /// Sets the value of [`TimeoutSettings::attempt`].
    #[must_use]
    pub fn with_attempt(self, timeout: Duration) -> TimeoutOptions {
        TimeoutOptions { attempt: Some(timeout), ..self }
    }

    /// Sets the value of [`TimeoutSettings::metadata_attempt`].
    #[must_use]
    pub fn with_metadata_attempt(self, timeout: Duration) -> TimeoutOptions {
        TimeoutOptions { metadata_attempt: Some(timeout), ..self }
    }

    /// Fills unset options from `fallback`.
    #[must_use]
    pub fn or(self, fallback: &TimeoutOptions) -> TimeoutOptions {
        TimeoutOptions {
            end_to_end: self.end_to_end.or(fallback.end_to_end),
            attempt: self.attempt.or(fallback.attempt),
            metadata_attempt: self.metadata_attempt.or(fallback.metadata_attempt),
        }
    }

    pub(super) fn resolve(&self) -> Result<TimeoutSettings, InvalidOption> {
        let default = TimeoutSettings::default();
        let positive = InvalidOption::unless_positive;
        Ok(TimeoutSettings {
            end_to_end: positive("timeouts.end_to_end", self.end_to_end.unwrap_or(default.end_to_end))?,
            attempt: positive("timeouts.attempt", self.attempt.unwrap_or(default.attempt))?,
            metadata_attempt: positive(
                "timeouts.metadata_attempt",
                self.metadata_attempt.unwrap_or(default.metadata_attempt),
            )?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_timeout_is_invalid() {
        for (options, name) in [
            (TimeoutOptions::new().with_end_to_end(Duration::ZERO), "timeouts.end_to_end"),
            (TimeoutOptions::new().with_attempt(Duration::ZERO), "timeouts.attempt"),
            (TimeoutOptions::new().with_metadata_attempt(Duration::ZERO), "timeouts.metadata_attempt"),
        ] {
            assert_eq!(options.resolve().expect_err(name).option, name);
        }
        assert_eq!(TimeoutOptions::new().resolve(), Ok(TimeoutSettings::default()));
    }
}
