//! The one place that reads time.
//!
//! A [`Clock`] hands out the wall clock as [`Ticks`]; a [`Stopwatch`] measures how long something
//! took. Everything else receives time as an argument, so tests choose it: [`Clock::manual`] stands
//! still until it is told to [`advance`](Clock::advance).
#![allow(clippy::disallowed_methods, reason = "this file is where the real clocks are read")]

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

/// Units of 100 ns per second.
const TICKS_PER_SECOND: i64 = 10_000_000;
/// What uptime counts from.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// How often a manual clock is looked at by those who wait for it.
const MANUAL_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Units of 100 ns per millisecond.
const TICKS_PER_MILLISECOND: i64 = 10_000;

/// A moment: units of 100 ns since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(pub i64);

impl Ticks {
    /// Whole seconds since the Unix epoch, as `_ts` counts them.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(TICKS_PER_SECOND)
    }

    /// Whole milliseconds since the Unix epoch.
    pub fn milliseconds(self) -> i64 {
        self.0.div_euclid(TICKS_PER_MILLISECOND)
    }

    /// The same moment as the standard library writes it, for formatting dates.
    pub fn to_system_time(self) -> SystemTime {
        let distance = Duration::from_nanos(self.0.unsigned_abs().saturating_mul(100));
        if self.0 >= 0 { SystemTime::UNIX_EPOCH + distance } else { SystemTime::UNIX_EPOCH - distance }
    }

    /// This moment, `later` afterwards.
    pub fn plus(self, later: Duration) -> Ticks {
        Ticks(self.0.saturating_add(ticks_of(later)))
    }
}

/// Hands out the time of day. Cheap to clone; clones of a manual clock share its hands.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Clock {
        Clock(Source::System)
    }

    /// A clock that stands at `start` until it is moved.
    pub fn manual(start: Ticks) -> Clock {
        Clock(Source::Manual(Arc::new(AtomicI64::new(start.0))))
    }

    /// What time it is.
    pub fn now(&self) -> Ticks {
        match &self.0 {
            Source::System => system_now(),
            Source::Manual(hands) => Ticks(hands.load(Ordering::Acquire)),
        }
    }

    /// How long it has been running, which never goes back: what lags and budgets are measured by.
    pub fn uptime(&self) -> Duration {
        match &self.0 {
            Source::System => STARTED.elapsed(),
            Source::Manual(hands) => duration_of(hands.load(Ordering::Acquire)),
        }
    }

    /// Waits until it has been running for so long.
    pub(crate) async fn reached(&self, uptime: Duration) {
        while let Some(left) = uptime.checked_sub(self.uptime()).filter(|left| !left.is_zero()) {
            match &self.0 {
                Source::System => tokio::time::sleep(left).await,
                // Whoever moves the hands does not ring; tests alone have such a clock.
                Source::Manual(_) => tokio::time::sleep(MANUAL_POLL_INTERVAL).await,
            }
        }
    }

    /// Moves a manual clock forward. The machine's clock cannot be moved and stays as it is.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(hands) = &self.0 {
            hands.fetch_add(ticks_of(by), Ordering::AcqRel);
        }
    }
}

/// Measures elapsed time on a clock that never goes backwards.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring now.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

fn system_now() -> Ticks {
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Ticks(ticks_of(since)),
        // A machine set before 1970 still gets an answer: negative ticks.
        Err(before) => Ticks(-ticks_of(before.duration())),
    }
}

fn duration_of(ticks: i64) -> Duration {
    Duration::from_nanos(u64::try_from(ticks).unwrap_or(0).saturating_mul(100))
}

fn ticks_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos() / 100).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told_and_its_clones_move_with_it() {
        let clock = Clock::manual(Ticks(15_000_000));
        let twin = clock.clone();
        assert_eq!(clock.now(), Ticks(15_000_000));
        twin.advance(Duration::from_millis(500));
        assert_eq!(clock.now(), Ticks(20_000_000));
        assert_eq!(clock.now().seconds(), 2);
        assert_eq!(clock.now().milliseconds(), 2_000);
    }

    #[test]
    fn moments_before_the_epoch_round_downwards() {
        assert_eq!(Ticks(-1).seconds(), -1);
        assert_eq!(Ticks(-1).milliseconds(), -1);
        assert_eq!(Ticks(-10_000_000).to_system_time(), SystemTime::UNIX_EPOCH - Duration::from_secs(1));
    }

    #[test]
    fn the_system_clock_cannot_be_moved() {
        let clock = Clock::system();
        let before = clock.now();
        clock.advance(Duration::from_secs(3_600));
        assert!(clock.now() < before.plus(Duration::from_secs(1_800)));
    }
}
