//! Options of timeouts, for operations and single requests.

use std::time::{Duration, Instant};

use super::InvalidOption;
use crate::clock::after;

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
    /// Sets [`TimeoutSettings::deadline`]; for operations only.
    pub deadline: Option<Instant>,
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
    /// The time by which the operation is over, even if `end_to_end` allows more: for work of several operations.
    /// Default: none.
    pub deadline: Option<Instant>,
}

impl TimeoutSettings {
    /// When an operation that begins at `started` must be over.
    pub fn deadline_from(&self, started: Instant) -> Instant {
        let own = after(started, self.end_to_end);
        self.deadline.map_or(own, |deadline| deadline.min(own))
    }
}

impl Default for TimeoutSettings {
    fn default() -> TimeoutSettings {
        TimeoutSettings {
            end_to_end: Duration::from_secs(60),
            attempt: Duration::from_secs(10),
            metadata_attempt: Duration::from_secs(5),
            deadline: None,
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

    /// Sets the value of [`TimeoutSettings::deadline`].
    #[must_use]
    pub fn with_deadline(self, deadline: Instant) -> TimeoutOptions {
        TimeoutOptions { deadline: Some(deadline), ..self }
    }

    /// Fills unset options from `fallback`.
    #[must_use]
    pub fn or(self, fallback: &TimeoutOptions) -> TimeoutOptions {
        TimeoutOptions {
            end_to_end: self.end_to_end.or(fallback.end_to_end),
            attempt: self.attempt.or(fallback.attempt),
            metadata_attempt: self.metadata_attempt.or(fallback.metadata_attempt),
            deadline: self.deadline.or(fallback.deadline),
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
            deadline: self.deadline,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn of_two_deadlines_the_earlier_one_counts() {
        let (now, second) = (Clock::machine().now(), Duration::from_secs(1));
        let settings = |options: TimeoutOptions| options.resolve().expect("valid");
        let whole = TimeoutOptions::new().with_end_to_end(5 * second);
        assert_eq!(settings(whole.clone()).deadline_from(now), now + 5 * second);
        assert_eq!(settings(whole.clone().with_deadline(now + second)).deadline_from(now), now + second);
        assert_eq!(settings(whole.with_deadline(now + 9 * second)).deadline_from(now), now + 5 * second);
        let never = TimeoutOptions::new().with_end_to_end(Duration::MAX);
        assert!(settings(never).deadline_from(now) > now + 1_000_000 * second);
    }

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
