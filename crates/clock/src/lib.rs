//! The clock of a local server: the only file that reads the system's clocks.
//!
//! A [`Clock`] has three times:
//!
//! - [`now`](Clock::now) is the account time, used for `_ts`, TTL, leases and resource tokens. It can be
//!   frozen, advanced, set and resumed while the account runs.
//! - [`wall_clock`](Clock::wall_clock) is the system's time of day, used for request signatures and
//!   certificates. Moving the account time does not move it.
//! - [`uptime`](Clock::uptime) is monotonic, used for replication lag, RU budgets and fault durations.
//!
//! All other code receives time as an argument, so tests choose it. A [`Clock::manual`] replaces the
//! system clock as well and stands still until [`advance`](Clock::advance) moves it. A [`Stopwatch`]
//! measures elapsed time. The text forms are in `timestamp` and `human_duration`.
#![allow(clippy::disallowed_methods, reason = "this file is where the real clocks are read")]

mod human_duration;
mod timestamp;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

pub use human_duration::{HumanDuration, ParseDurationError};
pub use timestamp::ParseTimestampError;

/// Units of 100 ns per second.
const TICKS_PER_SECOND: i64 = 10_000_000;
/// How often a task that waits for a manual clock checks it.
const MANUAL_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Units of 100 ns per millisecond.
const TICKS_PER_MILLISECOND: i64 = 10_000;

/// A timestamp: units of 100 ns since the Unix epoch.
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

    /// Converts this timestamp to a `SystemTime`, for formatting dates.
    pub fn to_system_time(self) -> SystemTime {
        let (ticks, per_second) = (self.0.unsigned_abs(), TICKS_PER_SECOND.unsigned_abs());
        // Nanoseconds alone would overflow in the year 2554.
        let distance = Duration::new(ticks / per_second, (ticks % per_second) as u32 * 100);
        if self.0 >= 0 { SystemTime::UNIX_EPOCH + distance } else { SystemTime::UNIX_EPOCH - distance }
    }

    /// Adds `later` to this timestamp, without overflow.
    pub fn plus(self, later: Duration) -> Ticks {
        Ticks(self.0.saturating_add(ticks_of(later)))
    }
}

/// Account time and wall-clock time, taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The account's time of day.
    pub account: Ticks,
    /// The system's time of day.
    pub wall_clock: Ticks,
}

/// Tells account time, wall-clock time and uptime. Cheap to clone; clones share their adjustment.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    source: TimeSource,
    adjustment: Arc<ClockAdjustment>,
}

/// Where wall-clock time and uptime come from.
#[derive(Clone, Debug, Default)]
enum TimeSource {
    #[default]
    System,
    Manual {
        start: Ticks,
        at: Arc<AtomicI64>,
    },
}

/// How the account time differs from the wall clock.
///
/// Reading takes two loads. `change_lock` serialises changes; each stores `offset` before it clears
/// `frozen_at`, so a reader that finds the clock running also finds the new offset.
#[derive(Debug)]
struct ClockAdjustment {
    /// The account time while it is frozen, or [`RUNNING`].
    frozen_at: AtomicI64,
    /// Ticks by which the account time is ahead of the wall clock while it runs.
    offset: AtomicI64,
    change_lock: Mutex<()>,
}

/// The value of `frozen_at` while the clock runs. No timestamp is that early.
const RUNNING: i64 = i64::MIN;

impl Default for ClockAdjustment {
    fn default() -> ClockAdjustment {
        ClockAdjustment {
            frozen_at: AtomicI64::new(RUNNING),
            offset: AtomicI64::new(0),
            change_lock: Mutex::new(()),
        }
    }
}

impl Clock {
    /// A clock that follows the system clock until it is moved.
    pub fn system() -> Clock {
        Clock::default()
    }

    /// A clock that stands at `start` until it is moved. Its wall clock and uptime stand still too.
    pub fn manual(start: Ticks) -> Clock {
        let source = TimeSource::Manual { start, at: Arc::new(AtomicI64::new(start.0)) };
        Clock { source, adjustment: Arc::default() }
    }

    /// The current account time.
    pub fn now(&self) -> Ticks {
        self.read().account
    }

    /// The current account time and wall-clock time, from one reading of the system clock.
    pub fn read(&self) -> ClockReading {
        let wall_clock = self.wall_clock();
        // Acquire pairs with the Release stores of `resume`: a reader that sees RUNNING sees the offset
        // that was stored before it.
        let account = match self.adjustment.frozen_at.load(Ordering::Acquire) {
            RUNNING => Ticks(wall_clock.0.saturating_add(self.adjustment.offset.load(Ordering::Acquire))),
            at => Ticks(at),
        };
        ClockReading { account, wall_clock }
    }

    /// The current wall-clock time. Only a manual clock can move it.
    pub fn wall_clock(&self) -> Ticks {
        match &self.source {
            TimeSource::System => system_now(),
            // Acquire pairs with the Release store of `advance`, as for every load of `at` below.
            TimeSource::Manual { at, .. } => Ticks(at.load(Ordering::Acquire)),
        }
    }

    /// Time since this process first asked for it, or how far a manual clock was advanced. Never
    /// shrinks, even when the account time is set back.
    pub fn uptime(&self) -> Duration {
        match &self.source {
            TimeSource::System => PROCESS_START.elapsed(),
            TimeSource::Manual { start, at } => {
                duration_of(at.load(Ordering::Acquire).saturating_sub(start.0))
            }
        }
    }

    /// Waits until the uptime has reached `uptime`.
    pub async fn wait_for_uptime(&self, uptime: Duration) {
        while let Some(left) = uptime.checked_sub(self.uptime()).filter(|left| !left.is_zero()) {
            match &self.source {
                TimeSource::System => tokio::time::sleep(left).await,
                // A manual clock notifies no one, so its waiters poll. Only tests have such a clock.
                TimeSource::Manual { .. } => tokio::time::sleep(MANUAL_POLL_INTERVAL).await,
            }
        }
    }

    /// Whether the account time is frozen.
    pub fn is_frozen(&self) -> bool {
        // Acquire, so that a caller that saw the clock frozen also sees what was written before that.
        self.adjustment.frozen_at.load(Ordering::Acquire) != RUNNING
    }

    /// Stops the account's time where it is.
    pub fn freeze(&self) {
        self.change(|adjustment, now| adjustment.frozen_at.store(now.0, Ordering::Release));
    }

    /// Lets the account's time run again, from where it stands.
    pub fn resume(&self) {
        self.change(|adjustment, now| {
            adjustment.run_from(now, self.wall_clock());
            // Release after the offset: readers that see RUNNING see the new offset.
            adjustment.frozen_at.store(RUNNING, Ordering::Release);
        });
    }

    /// Moves the account time forward; on a manual clock, the wall clock and the uptime too.
    pub fn advance(&self, by: Duration) {
        self.change(|adjustment, now| {
            if let TimeSource::Manual { at, .. } = &self.source {
                // Load and store are not one step; `change` lets one caller in at a time.
                let moved = Ticks(at.load(Ordering::Acquire)).plus(by);
                at.store(moved.0, Ordering::Release);
            }
            adjustment.move_to(now.plus(by), self.wall_clock());
        });
    }

    /// Sets the account time. A frozen clock stands there; a running one runs on from there.
    pub fn set(&self, to: Ticks) {
        self.change(|adjustment, _| adjustment.move_to(to, self.wall_clock()));
    }

    /// Applies one change at a time; `change` receives the account time that the last one left.
    fn change(&self, change: impl FnOnce(&ClockAdjustment, Ticks)) {
        let _lock = self.adjustment.change_lock.lock();
        change(&self.adjustment, self.now());
    }
}

impl ClockAdjustment {
    fn move_to(&self, to: Ticks, wall_clock: Ticks) {
        match self.frozen_at.load(Ordering::Acquire) {
            RUNNING => self.run_from(to, wall_clock),
            _ => self.frozen_at.store(to.0, Ordering::Release),
        }
    }

    fn run_from(&self, from: Ticks, wall_clock: Ticks) {
        self.offset.store(from.0.saturating_sub(wall_clock.0), Ordering::Release);
    }
}

/// The instant that uptime counts from.
static PROCESS_START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Measures elapsed time on a clock that never goes backwards.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts a stopwatch at this instant.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Time since the stopwatch was started.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

fn system_now() -> Ticks {
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Ticks(ticks_of(since)),
        // A system clock set before 1970 reads as negative ticks.
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

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_manual_clock_moves_only_when_advanced_and_its_clones_move_with_it() {
        let clock = Clock::manual(Ticks(15_000_000));
        let copy = clock.clone();
        assert_eq!(clock.now(), Ticks(15_000_000));
        copy.advance(Duration::from_millis(500));
        assert_eq!(clock.now(), Ticks(20_000_000));
        assert_eq!(clock.now().seconds(), 2);
        assert_eq!(clock.now().milliseconds(), 2_000);
        assert_eq!((clock.wall_clock(), clock.uptime()), (clock.now(), Duration::from_millis(500)));
    }

    #[test]
    fn timestamps_before_the_epoch_round_downwards() {
        assert_eq!(Ticks(-1).seconds(), -1);
        assert_eq!(Ticks(-1).milliseconds(), -1);
        assert_eq!(Ticks(-10_000_000).to_system_time(), SystemTime::UNIX_EPOCH - SECOND);
        let last: Ticks = "9999-12-31T23:59:59Z".parse().unwrap();
        assert_eq!(last.to_system_time(), SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799));
    }

    #[test]
    fn wall_clock_and_uptime_stay_when_the_account_time_moves() {
        let clock = Clock::system();
        let (wall_clock, uptime) = (clock.wall_clock(), clock.uptime());
        clock.clone().advance(HOUR);
        assert!(clock.now() >= wall_clock.plus(HOUR));
        clock.freeze();
        clock.set(Ticks(0));
        assert_eq!(clock.now(), Ticks(0));
        assert!(clock.wall_clock() < wall_clock.plus(HOUR / 2) && clock.uptime() < uptime + HOUR / 2);
        assert!(clock.uptime() >= uptime);
    }

    /// Checks the account time after each step, on a wall clock that ticks one second before each of them.
    #[test]
    fn the_account_time_can_be_frozen_moved_and_resumed_in_any_order() {
        let start = Ticks(1_000 * TICKS_PER_SECOND);
        let clock = Clock::manual(start);
        let tick = || {
            let TimeSource::Manual { at, .. } = &clock.source else { unreachable!("a manual clock") };
            // One thread only; the ordering matches the clock's own accesses.
            at.fetch_add(TICKS_PER_SECOND, Ordering::AcqRel);
        };
        let steps: [(&str, &dyn Fn(), i64); 9] = [
            ("it runs", &|| {}, 1_001),
            ("frozen, it stands", &|| clock.freeze(), 1_002),
            ("still", &|| {}, 1_002),
            ("frozen again, it stays", &|| clock.freeze(), 1_002),
            ("set, it stands there", &|| clock.set(Ticks(5_000 * TICKS_PER_SECOND)), 5_000),
            ("resumed, it runs on from there", &|| clock.resume(), 5_000),
            ("resumed again, nothing changes", &|| clock.resume(), 5_001),
            ("set while it runs, it runs on", &|| clock.set(Ticks(10 * TICKS_PER_SECOND)), 10),
            ("from there", &|| {}, 11),
        ];
        for (what, step, expected) in steps {
            tick();
            step();
            assert_eq!(clock.now().seconds(), expected, "{what}");
        }
        assert_eq!(clock.uptime(), 9 * SECOND);
    }

    #[test]
    fn a_frozen_clock_can_be_advanced() {
        for clock in [Clock::system(), Clock::manual(Ticks(0))] {
            clock.freeze();
            let before = clock.now();
            clock.advance(HOUR);
            assert_eq!(clock.now(), before.plus(HOUR), "{clock:?}");
            assert!(clock.is_frozen());
            clock.resume();
            assert!(clock.now() >= before.plus(HOUR) && !clock.is_frozen());
        }
    }

    #[test]
    fn no_timestamp_overflows_at_the_limits() {
        let clock = Clock::system();
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert!(clock.now() > Ticks(0));
        clock.set(Ticks(i64::MIN));
        clock.set(Ticks(i64::MAX));
        assert!(clock.now() > Ticks(0));
    }
}
