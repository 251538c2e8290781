//! Options of the circuit breaker per partition and region.

use std::num::NonZeroU32;
use std::time::Duration;

use super::InvalidOption;

/// Options of the circuit breaker; unset ones come from the next layer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CircuitBreakerOptions {
    /// Overrides [`CircuitBreakerConfig::enabled`] if it is set.
    pub enabled: Option<bool>,
    /// Overrides [`CircuitBreakerConfig::read_failure_threshold`] if it is set.
    pub read_failure_threshold: Option<NonZeroU32>,
    /// Overrides [`CircuitBreakerConfig::write_failure_threshold`] if it is set.
    pub write_failure_threshold: Option<NonZeroU32>,
    /// Overrides [`CircuitBreakerConfig::counter_reset_window`] if it is set.
    pub counter_reset_window: Option<Duration>,
    /// Overrides [`CircuitBreakerConfig::unavailability_probe_delay`] if it is set.
    pub unavailability_probe_delay: Option<Duration>,
    /// Overrides [`CircuitBreakerConfig::failback_interval`] if it is set.
    pub failback_interval: Option<Duration>,
}

/// The resolved settings of the circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CircuitBreakerConfig {
    /// Whether failures are counted at all. Default: yes.
    pub enabled: bool,
    /// Consecutive failed reads that open the breaker. Default: 2.
    pub read_failure_threshold: NonZeroU32,
    /// Consecutive failed writes that open the breaker. Default: 5.
    pub write_failure_threshold: NonZeroU32,
    /// Failures further apart than this are not consecutive. Default: 5 min.
    pub counter_reset_window: Duration,
    /// How long a breaker stays open before a probe. Default: 5 s.
    pub unavailability_probe_delay: Duration,
    /// How often the background task looks for partitions to fail back. Default: 300 s.
    pub failback_interval: Duration,
}

impl Default for CircuitBreakerConfig {
    fn default() -> CircuitBreakerConfig {
        CircuitBreakerConfig {
            enabled: true,
            read_failure_threshold: NonZeroU32::new(2).expect("2 is not zero"),
            write_failure_threshold: NonZeroU32::new(5).expect("5 is not zero"),
            counter_reset_window: Duration::from_secs(5 * 60),
            unavailability_probe_delay: Duration::from_secs(5),
            failback_interval: Duration::from_secs(300),
        }
    }
}

impl CircuitBreakerOptions {
    /// Options that set nothing.
    pub fn new() -> CircuitBreakerOptions {
        CircuitBreakerOptions::default()
    }

    /// Sets the value of [`CircuitBreakerConfig::enabled`].
    #[must_use]
    pub fn with_enabled(self, enabled: bool) -> CircuitBreakerOptions {
        CircuitBreakerOptions { enabled: Some(enabled), ..self }
    }

    /// Sets [`CircuitBreakerConfig::read_failure_threshold`] and
    /// [`CircuitBreakerConfig::write_failure_threshold`].
    #[must_use]
    pub fn with_failure_thresholds(self, reads: NonZeroU32, writes: NonZeroU32) -> CircuitBreakerOptions {
        CircuitBreakerOptions {
            read_failure_threshold: Some(reads),
            write_failure_threshold: Some(writes),
            ..self
        }
    }

    /// Sets the value of [`CircuitBreakerConfig::counter_reset_window`].
    #[must_use]
    pub fn with_counter_reset_window(self, window: Duration) -> CircuitBreakerOptions {
        CircuitBreakerOptions { counter_reset_window: Some(window), ..self }
    }

    /// Sets the value of [`CircuitBreakerConfig::unavailability_probe_delay`].
    #[must_use]
    pub fn with_unavailability_probe_delay(self, delay: Duration) -> CircuitBreakerOptions {
        CircuitBreakerOptions { unavailability_probe_delay: Some(delay), ..self }
    }

    /// Sets the value of [`CircuitBreakerConfig::failback_interval`].
    #[must_use]
    pub fn with_failback_interval(self, interval: Duration) -> CircuitBreakerOptions {
        CircuitBreakerOptions { failback_interval: Some(interval), ..self }
    }

    /// Fills unset options from `fallback`.
    #[must_use]
    pub fn or(self, fallback: &CircuitBreakerOptions) -> CircuitBreakerOptions {
        CircuitBreakerOptions {
            enabled: self.enabled.or(fallback.enabled),
            read_failure_threshold: self.read_failure_threshold.or(fallback.read_failure_threshold),
            write_failure_threshold: self.write_failure_threshold.or(fallback.write_failure_threshold),
            counter_reset_window: self.counter_reset_window.or(fallback.counter_reset_window),
            unavailability_probe_delay: self
                .unavailability_probe_delay
                .or(fallback.unavailability_probe_delay),
            failback_interval: self.failback_interval.or(fallback.failback_interval),
        }
    }

    pub(super) fn resolve(&self) -> Result<CircuitBreakerConfig, InvalidOption> {
        let default = CircuitBreakerConfig::default();
        let positive = InvalidOption::unless_positive;
        Ok(CircuitBreakerConfig {
            enabled: self.enabled.unwrap_or(default.enabled),
            read_failure_threshold: self.read_failure_threshold.unwrap_or(default.read_failure_threshold),
            write_failure_threshold: self.write_failure_threshold.unwrap_or(default.write_failure_threshold),
            counter_reset_window: positive(
                "circuit_breaker.counter_reset_window",
                self.counter_reset_window.unwrap_or(default.counter_reset_window),
            )?,
            unavailability_probe_delay: self
                .unavailability_probe_delay
                .unwrap_or(default.unavailability_probe_delay),
            failback_interval: positive(
                "circuit_breaker.failback_interval",
                self.failback_interval.unwrap_or(default.failback_interval),
            )?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let config = CircuitBreakerOptions::new().resolve().expect("valid");
        assert_eq!(config, CircuitBreakerConfig::default());
        assert_eq!((config.read_failure_threshold.get(), config.write_failure_threshold.get()), (2, 5));
        assert_eq!(config.counter_reset_window, Duration::from_secs(300));
        assert_eq!(config.unavailability_probe_delay, Duration::from_secs(5));
        assert_eq!(config.failback_interval, Duration::from_secs(300));
    }

    #[test]
    fn a_zero_health_check_interval_is_invalid() {
        let options = CircuitBreakerOptions::new().with_failback_interval(Duration::ZERO);
        assert_eq!(options.resolve().expect_err("busy").option, "circuit_breaker.failback_interval");
    }
}
