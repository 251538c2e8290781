//! The one place that reads time.
//!
//! A [`Clock`] knows three times, and which one to ask for is the whole question:
//!
//! - [`now`](Clock::now) is the account's time of day: `_ts`, TTL, leases and resource tokens live by
//!   it. It can be frozen, advanced, set and resumed while the account runs.
//! - [`machine`](Clock::machine) is the time of day outside, which clients sign with and certificates
//!   are valid by. Moving the account's time does not move it.
//! - [`uptime`](Clock::uptime) only ever grows, at its own pace: lag, budgets and fault durations.
//!
//! Everything else receives time as an argument, so tests choose it: a [`Clock::manual`] stands in for
//! the machine too, and stands still until it is told to [`advance`](Clock::advance). A [`Stopwatch`]
//! measures how long something took. How moments and durations are written is in `moment` and `span`.
#![allow(clippy::disallowed_methods, reason = "this file is where the real clocks are read")]

mod moment;
mod span;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

pub use moment::BadMoment;
pub use span::{BadSpan, Span};

/// Units of 100 ns per second.
const TICKS_PER_SECOND: i64 = 10_000_000;
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

/// One moment, as both see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The account's time of day.
    pub account: Ticks,
    /// The time of day outside.
    pub machine: Ticks,
}

/// Hands out the time. Cheap to clone; clones share their hands.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    machine: Machine,
    hands: Arc<Hands>,
}

/// Where the time outside comes from.
#[derive(Clone, Debug, Default)]
enum Machine {
    #[default]
    System,
    Manual {
        start: Ticks,
        at: Arc<AtomicI64>,
    },
}

/// How the account's time differs from the machine's.
///
/// Reading is two loads. Changes take turns; each sets `ahead` before it clears `frozen_at`, so a
/// reader that finds the clock running also finds how far ahead it is to be.
#[derive(Debug)]
struct Hands {
    /// Where it stands, or [`RUNNING`].
    frozen_at: AtomicI64,
    /// Ticks by which it is ahead of the machine while it runs.
    ahead: AtomicI64,
    turn: Mutex<()>,
}

/// In place of a moment at which the clock stands: nobody gets there.
const RUNNING: i64 = i64::MIN;

impl Default for Hands {
    fn default() -> Hands {
        Hands { frozen_at: AtomicI64::new(RUNNING), ahead: AtomicI64::new(0), turn: Mutex::new(()) }
    }
}

impl Clock {
    /// The machine's clock, until it is moved.
    pub fn system() -> Clock {
        Clock::default()
    }

    /// A clock that stands at `start` until it is moved, and so does the machine as it sees it.
    pub fn manual(start: Ticks) -> Clock {
        let machine = Machine::Manual { start, at: Arc::new(AtomicI64::new(start.0)) };
        Clock { machine, hands: Arc::default() }
    }

    /// What time it is for the account.
    pub fn now(&self) -> Ticks {
        self.times().account
    }

    /// What time it is for the account and outside, from one look at the machine's clock.
    pub fn times(&self) -> Times {
        let machine = self.machine();
        let account = match self.hands.frozen_at.load(Ordering::Acquire) {
            RUNNING => Ticks(machine.0.saturating_add(self.hands.ahead.load(Ordering::Acquire))),
            at => Ticks(at),
        };
        Times { account, machine }
    }

    /// What time it is outside. Only a manual clock can move it.
    pub fn machine(&self) -> Ticks {
        match &self.machine {
            Machine::System => system_now(),
            Machine::Manual { at, .. } => Ticks(at.load(Ordering::Acquire)),
        }
    }

    /// How long ago this process first asked, or how far a manual clock was advanced. Never shrinks,
    /// whatever happens to the account's time.
    pub fn uptime(&self) -> Duration {
        match &self.machine {
            Machine::System => STARTED.elapsed(),
            Machine::Manual { start, at } => duration_of(at.load(Ordering::Acquire).saturating_sub(start.0)),
        }
    }

    /// Waits until it has been running for so long.
    pub async fn reached(&self, uptime: Duration) {
        while let Some(left) = uptime.checked_sub(self.uptime()).filter(|left| !left.is_zero()) {
            match &self.machine {
                Machine::System => tokio::time::sleep(left).await,
                // Whoever moves the hands does not ring; tests alone have such a clock.
                Machine::Manual { .. } => tokio::time::sleep(MANUAL_POLL_INTERVAL).await,
            }
        }
    }

    /// Whether the account's time stands still although the machine's does not.
    pub fn is_frozen(&self) -> bool {
        self.hands.frozen_at.load(Ordering::Acquire) != RUNNING
    }

    /// Stops the account's time where it is.
    pub fn freeze(&self) {
        self.change(|hands, now| hands.frozen_at.store(now.0, Ordering::Release));
    }

    /// Lets the account's time run again, from where it stands.
    pub fn resume(&self) {
        self.change(|hands, now| {
            hands.run_from(now, self.machine());
            hands.frozen_at.store(RUNNING, Ordering::Release);
        });
    }

    /// Moves the account's time forward; of a manual clock, the machine's and the uptime too.
    pub fn advance(&self, by: Duration) {
        self.change(|hands, now| {
            if let Machine::Manual { at, .. } = &self.machine {
                let moved = Ticks(at.load(Ordering::Acquire)).plus(by);
                at.store(moved.0, Ordering::Release);
            }
            hands.move_to(now.plus(by), self.machine());
        });
    }

    /// Sets the account's time. Frozen, it stands there; otherwise it runs on from there.
    pub fn set(&self, to: Ticks) {
        self.change(|hands, _| hands.move_to(to, self.machine()));
    }

    /// One change at a time, each from where the one before left the hands.
    fn change(&self, change: impl FnOnce(&Hands, Ticks)) {
        // Nothing is left half done by a panic: the hands are numbers.
        let _turn = self.hands.turn.lock().unwrap_or_else(PoisonError::into_inner);
        change(&self.hands, self.now());
    }
}

impl Hands {
    fn move_to(&self, to: Ticks, machine: Ticks) {
        match self.frozen_at.load(Ordering::Acquire) {
            RUNNING => self.run_from(to, machine),
            _ => self.frozen_at.store(to.0, Ordering::Release),
        }
    }

    fn run_from(&self, from: Ticks, machine: Ticks) {
        self.ahead.store(from.0.saturating_sub(machine.0), Ordering::Release);
    }
}

/// What uptime counts from.
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

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

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_manual_clock_moves_only_when_told_and_its_clones_move_with_it() {
        let clock = Clock::manual(Ticks(15_000_000));
        let twin = clock.clone();
        assert_eq!(clock.now(), Ticks(15_000_000));
        twin.advance(Duration::from_millis(500));
        assert_eq!(clock.now(), Ticks(20_000_000));
        assert_eq!(clock.now().seconds(), 2);
        assert_eq!(clock.now().milliseconds(), 2_000);
        assert_eq!((clock.machine(), clock.uptime()), (clock.now(), Duration::from_millis(500)));
    }

    #[test]
    fn moments_before_the_epoch_round_downwards() {
        assert_eq!(Ticks(-1).seconds(), -1);
        assert_eq!(Ticks(-1).milliseconds(), -1);
        assert_eq!(Ticks(-10_000_000).to_system_time(), SystemTime::UNIX_EPOCH - SECOND);
    }

    #[test]
    fn the_system_clock_s_own_time_and_uptime_stay_when_the_account_s_moves() {
        let clock = Clock::system();
        let (machine, uptime) = (clock.machine(), clock.uptime());
        clock.clone().advance(HOUR);
        assert!(clock.now() >= machine.plus(HOUR));
        clock.freeze();
        clock.set(Ticks(0));
        assert_eq!(clock.now(), Ticks(0));
        assert!(clock.machine() < machine.plus(HOUR / 2) && clock.uptime() < uptime + HOUR / 2);
        assert!(clock.uptime() >= uptime);
    }

    /// The hands after each step, on a machine that ticks a second before each of them.
    #[test]
    fn it_can_be_frozen_moved_and_resumed_in_any_order() {
        let start = Ticks(1_000 * TICKS_PER_SECOND);
        let clock = Clock::manual(start);
        let tick = || {
            let Machine::Manual { at, .. } = &clock.machine else { unreachable!("made so") };
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
    fn nothing_overflows_at_the_ends_of_time() {
        let clock = Clock::system();
        clock.advance(Duration::MAX);
        clock.advance(Duration::MAX);
        assert!(clock.now() > Ticks(0));
        clock.set(Ticks(i64::MIN));
        clock.set(Ticks(i64::MAX));
        assert!(clock.now() > Ticks(0));
    }
}
