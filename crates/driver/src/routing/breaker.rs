//! The circuit breaker of one partition in one region, for reads or for writes. Pure: values in, values out.
//!
//! Failures open it, a probe or the failback interval lets requests through on trial (*half open*), and the
//! first success closes it. A failure is definite, or it is silence: no response came while somebody waited. A
//! single slow response is no outage, so silence opens a breaker only once it has lasted for [`SILENT_FOR`].

use std::time::{Duration, Instant};

use crate::clock::after;
use crate::operation::Access;
use crate::options::CircuitBreakerConfig;

/// How long there must be no response at all before silence counts as an outage.
pub(crate) const SILENT_FOR: Duration = Duration::from_secs(1);

/// How a request failed, as a breaker counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionFailure {
    /// The service rejected the request, or the connection failed, or the attempt took its whole time.
    Definite,
    /// No response had come when the attempt was given up before its time.
    Silent {
        /// When the attempt started.
        since: Instant,
    },
}

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Traffic flows; failures are counted.
    Closed,
    /// Requests for the partition go to other regions.
    Open {
        /// When the breaker opened.
        since: Instant,
        /// When the partition was last probed, or the breaker opened.
        probed_at: Instant,
    },
    /// Traffic flows on trial.
    HalfOpen,
}

/// What is known of one partition in one region. Breakers without anything to remember are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Requests that failed, one after the other.
    pub failures: u32,
    /// How many of these got no response before they were given up.
    pub silent_failures: u32,
    /// When the last of them failed.
    pub last_failure: Instant,
    /// The state of the breaker.
    pub state: BreakerState,
    /// When the first of the silent requests started.
    pub(super) silent_since: Option<Instant>,
}

impl Breaker {
    /// A breaker that has counted nothing.
    pub(super) fn closed(now: Instant) -> Breaker {
        Breaker {
            failures: 0,
            silent_failures: 0,
            last_failure: now,
            state: BreakerState::Closed,
            silent_since: None,
        }
    }

    /// Whether requests go to other regions.
    pub fn is_open(&self) -> bool {
        matches!(self.state, BreakerState::Open { .. })
    }

    /// The breaker after one more failure. Opens once `threshold` requests failed in a row, and at once while it was
    /// on trial.
    pub(super) fn after_failure(
        mut self,
        failure: PartitionFailure,
        threshold: u32,
        now: Instant,
    ) -> Breaker {
        self.failures = self.failures.saturating_add(1);
        self.last_failure = now;
        if let PartitionFailure::Silent { since } = failure {
            self.silent_failures = self.silent_failures.saturating_add(1);
            self.silent_since = Some(self.silent_since.map_or(since, |first| first.min(since)));
        }
        let silence_lasted =
            self.silent_since.is_some_and(|since| now.saturating_duration_since(since) >= SILENT_FOR);
        let definite = self.failures - self.silent_failures;
        let enough = definite >= threshold || (self.failures >= threshold && silence_lasted);
        self.state = match self.state {
            BreakerState::Closed if !enough => BreakerState::Closed,
            BreakerState::Closed | BreakerState::HalfOpen => opened(now),
            open @ BreakerState::Open { .. } => open,
        };
        self
    }

    /// The breaker opened without counting a failure.
    pub(super) fn tripped(mut self, now: Instant) -> Breaker {
        self.last_failure = now;
        if !self.is_open() {
            self.state = opened(now);
        }
        self
    }

    /// Whether a successful read of the partition shows that requests of this kind would succeed: for reads, and for
    /// writes that got no response. Writes that the region rejected say nothing about its reads.
    fn is_answered_by_reads(&self, access: Access) -> bool {
        match access {
            Access::Read => self.failures > 0,
            Access::Write => self.failures > 0 && self.failures == self.silent_failures,
        }
    }

    /// When a probe of the open breaker is due; none if it is not open, or a probe would show nothing.
    pub(super) fn probe_due(&self, access: Access, config: &CircuitBreakerConfig) -> Option<Instant> {
        match self.state {
            BreakerState::Open { probed_at, .. } if self.is_answered_by_reads(access) => {
                Some(after(probed_at, config.unavailability_probe_delay))
            }
            BreakerState::Open { .. } | BreakerState::Closed | BreakerState::HalfOpen => None,
        }
    }

    /// When the breaker changes without a probe: its failures are forgotten, or traffic returns on trial.
    pub(super) fn change_due(&self, config: &CircuitBreakerConfig) -> Instant {
        match self.state {
            BreakerState::Closed | BreakerState::HalfOpen => {
                after(self.last_failure, config.counter_reset_window)
            }
            BreakerState::Open { since, .. } => after(since, config.failback_interval),
        }
    }
}

fn opened(now: Instant) -> BreakerState {
    BreakerState::Open { since: now, probed_at: now }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn silence_opens_a_breaker_once_it_has_lasted() {
        let start = Clock::machine().now();
        let silent = |breaker: Breaker, since: Duration, now: Duration| {
            breaker.after_failure(PartitionFailure::Silent { since: start + since }, 2, start + now)
        };
        let mut breaker = Breaker::closed(start);
        // A hundred slow responses within a second are no outage.
        for _ in 0..100 {
            breaker = silent(breaker, Duration::ZERO, SECOND / 2);
        }
        assert!(!breaker.is_open());
        assert!(silent(breaker, SECOND / 2, SECOND).is_open());
        let once = silent(Breaker::closed(start), Duration::ZERO, 5 * SECOND);
        assert!(!once.is_open(), "one attempt is not enough, however long it took");
        assert!(once.after_failure(PartitionFailure::Definite, 2, start + 5 * SECOND).is_open());
    }

    #[test]
    fn definite_failures_open_a_breaker_at_once() {
        let now = Clock::machine().now();
        let once = Breaker::closed(now).after_failure(PartitionFailure::Definite, 2, now);
        assert!(!once.is_open() && once.after_failure(PartitionFailure::Definite, 2, now).is_open());
    }

    #[test]
    fn a_read_answers_for_reads_and_for_writes_that_met_silence() {
        let now = Clock::machine().now();
        let config = CircuitBreakerConfig::default();
        let silent = PartitionFailure::Silent { since: now };
        for (access, failures, is_probed) in [
            (Access::Read, &[PartitionFailure::Definite][..], true),
            (Access::Read, &[silent], true),
            (Access::Write, &[silent], true),
            (Access::Write, &[PartitionFailure::Definite], false),
            (Access::Write, &[silent, PartitionFailure::Definite], false),
        ] {
            let failed = failures
                .iter()
                .fold(Breaker::closed(now), |breaker, failure| breaker.after_failure(*failure, 9, now));
            assert_eq!(
                failed.tripped(now).probe_due(access, &config).is_some(),
                is_probed,
                "{access:?} {failures:?}"
            );
        }
        assert_eq!(Breaker::closed(now).tripped(now).probe_due(Access::Write, &config), None);
    }

    #[test]
    fn windows_without_an_end_are_allowed() {
        let now = Clock::machine().now();
        let config = CircuitBreakerConfig {
            counter_reset_window: Duration::MAX,
            failback_interval: Duration::MAX,
            unavailability_probe_delay: Duration::MAX,
            ..CircuitBreakerConfig::default()
        };
        let failed = Breaker::closed(now).after_failure(PartitionFailure::Definite, 1, now);
        for breaker in [Breaker::closed(now), failed] {
            assert!(breaker.change_due(&config) > now);
        }
        assert!(failed.probe_due(Access::Read, &config).is_some_and(|due| due > now));
    }
}
