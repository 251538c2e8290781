//! Options of retries: how often, and for how long.

use std::time::Duration;

use super::InvalidOption;

/// Options of retries; unset ones come from the next layer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RetryOptions {
    /// Overrides [`RetryPolicy::failover_retries_max`] if it is set.
    pub failover_retries_max: Option<u32>,
    /// Overrides [`RetryPolicy::session_retries_max`] if it is set.
    pub session_retries_max: Option<u32>,
    /// Overrides [`RetryPolicy::connection_retries_max`] if it is set.
    pub connection_retries_max: Option<u32>,
    /// Overrides [`RetryPolicy::conflict_retries_max`] if it is set.
    pub conflict_retries_max: Option<u32>,
    /// Overrides [`RetryPolicy::forbidden_wait_max`] if it is set.
    pub forbidden_wait_max: Option<Duration>,
    /// Overrides [`RetryPolicy::throttle_retries_max`] if it is set.
    pub throttle_retries_max: Option<u32>,
    /// Overrides [`RetryPolicy::throttle_wait_max`] if it is set.
    pub throttle_wait_max: Option<Duration>,
}

/// The resolved limits of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Failovers to other regions after responses such as 503. Default: 6.
    pub failover_retries_max: u32,
    /// Retries in other regions after 404/1002. Default: 4.
    pub session_retries_max: u32,
    /// Retries after a request that was not sent. Default: 3.
    pub connection_retries_max: u32,
    /// Retries after 449. Default: 8.
    pub conflict_retries_max: u32,
    /// Total wait between retries after 403/3 and 403/1008. Default: 5 s.
    pub forbidden_wait_max: Duration,
    /// Retries in one region after 429. Default: 9.
    pub throttle_retries_max: u32,
    /// Total wait between retries after 429. Default: 30 s.
    pub throttle_wait_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            failover_retries_max: 6,
            session_retries_max: 4,
            connection_retries_max: 3,
            conflict_retries_max: 8,
            forbidden_wait_max: Duration::from_secs(5),
            throttle_retries_max: 9,
            throttle_wait_max: Duration::from_secs(30),
        }
    }
}

/// More retries than this are a loop, not a policy.
const RETRIES_MAX: u32 = 1000;

impl RetryOptions {
    /// Options that set nothing.
    pub fn new() -> RetryOptions {
        RetryOptions::default()
    }

    /// Sets the value of [`RetryPolicy::failover_retries_max`].
    #[must_use]
    pub fn with_failover_retries_max(self, retries: u32) -> RetryOptions {
        RetryOptions { failover_retries_max: Some(retries), ..self }
    }

    /// Sets the value of [`RetryPolicy::session_retries_max`].
    #[must_use]
    pub fn with_session_retries_max(self, retries: u32) -> RetryOptions {
        RetryOptions { session_retries_max: Some(retries), ..self }
    }

    /// Sets the value of [`RetryPolicy::connection_retries_max`].
    #[must_use]
    pub fn with_connection_retries_max(self, retries: u32) -> RetryOptions {
        RetryOptions { connection_retries_max: Some(retries), ..self }
    }

    /// Sets the value of [`RetryPolicy::conflict_retries_max`].
    #[must_use]
    pub fn with_conflict_retries_max(self, retries: u32) -> RetryOptions {
        RetryOptions { conflict_retries_max: Some(retries), ..self }
    }

    /// Sets the value of [`RetryPolicy::forbidden_wait_max`].
    #[must_use]
    pub fn with_forbidden_wait_max(self, wait: Duration) -> RetryOptions {
        RetryOptions { forbidden_wait_max: Some(wait), ..self }
    }

    /// Sets [`RetryPolicy::throttle_retries_max`] and [`RetryPolicy::throttle_wait_max`].
    #[must_use]
    pub fn with_throttling(self, retries: u32, wait: Duration) -> RetryOptions {
        RetryOptions { throttle_retries_max: Some(retries), throttle_wait_max: Some(wait), ..self }
    }

    /// Fills unset options from `fallback`.
    #[must_use]
    pub fn or(self, fallback: &RetryOptions) -> RetryOptions {
        RetryOptions {
            failover_retries_max: self.failover_retries_max.or(fallback.failover_retries_max),
            session_retries_max: self.session_retries_max.or(fallback.session_retries_max),
            connection_retries_max: self.connection_retries_max.or(fallback.connection_retries_max),
            conflict_retries_max: self.conflict_retries_max.or(fallback.conflict_retries_max),
            forbidden_wait_max: self.forbidden_wait_max.or(fallback.forbidden_wait_max),
            throttle_retries_max: self.throttle_retries_max.or(fallback.throttle_retries_max),
            throttle_wait_max: self.throttle_wait_max.or(fallback.throttle_wait_max),
        }
    }

    pub(super) fn resolve(&self) -> Result<RetryPolicy, InvalidOption> {
        let default = RetryPolicy::default();
        let retries = |option, said: Option<u32>, default: u32| match said.unwrap_or(default) {
            retries if retries > RETRIES_MAX => {
                Err(InvalidOption::new(option, format!("is {retries} and may be at most {RETRIES_MAX}")))
            }
            retries => Ok(retries),
        };
        Ok(RetryPolicy {
            failover_retries_max: retries(
                "retry.failover_retries_max",
                self.failover_retries_max,
                default.failover_retries_max,
            )?,
            session_retries_max: retries(
                "retry.session_retries_max",
                self.session_retries_max,
                default.session_retries_max,
            )?,
            connection_retries_max: retries(
                "retry.connection_retries_max",
                self.connection_retries_max,
                default.connection_retries_max,
            )?,
            conflict_retries_max: retries(
                "retry.conflict_retries_max",
                self.conflict_retries_max,
                default.conflict_retries_max,
            )?,
            forbidden_wait_max: self.forbidden_wait_max.unwrap_or(default.forbidden_wait_max),
            throttle_retries_max: retries(
                "retry.throttle_retries_max",
                self.throttle_retries_max,
                default.throttle_retries_max,
            )?,
            throttle_wait_max: self.throttle_wait_max.unwrap_or(default.throttle_wait_max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_options_are_the_defaults() {
        assert_eq!(RetryOptions::new().resolve(), Ok(RetryPolicy::default()));
    }

    #[test]
    fn no_retries_at_all_is_a_choice_and_a_loop_is_not() {
        let none = RetryOptions::new()
            .with_failover_retries_max(0)
            .with_session_retries_max(0)
            .with_connection_retries_max(0)
            .with_conflict_retries_max(0)
            .with_forbidden_wait_max(Duration::ZERO)
            .with_throttling(0, Duration::ZERO);
        let policy = none.resolve().expect("a choice");
        assert_eq!((policy.failover_retries_max, policy.throttle_retries_max), (0, 0));
        let error = RetryOptions::new().with_failover_retries_max(RETRIES_MAX + 1).resolve();
        assert_eq!(error.expect_err("a loop").option, "retry.failover_retries_max");
    }
}
