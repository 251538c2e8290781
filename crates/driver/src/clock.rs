//! Time: the one place that reads it and waits for it.
//!
//! Decisions take `now` as an argument; loops ask a [`Clock`]. A real clock reads the machine and
//! sleeps through the runtime of `azure_core`; a `ManualTime` (feature `test-util`) stands still until a test moves it, so
//! that minutes of backoff pass in microseconds and always in the same order.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use azure_core::async_runtime::{TaskFuture, get_async_runtime};

#[cfg(any(test, feature = "test-util"))]
pub use manual::ManualTime;

/// Longer than anyone waits, and short enough for every platform to calculate with.
const WAIT_MAX: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The moment `wait` after `since`, at most thirty years later: "never" is a valid timeout
/// (`Duration::MAX`), and adding it to a moment would panic.
pub(crate) fn after(since: Instant, wait: Duration) -> Instant {
    since.checked_add(wait.min(WAIT_MAX)).unwrap_or(since)
}

/// Where the driver gets its time from. Cheap to clone.
#[derive(Clone, Default)]
pub struct Clock(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Machine,
    #[cfg(any(test, feature = "test-util"))]
    Manual(std::sync::Arc<manual::Shared>),
}

impl Clock {
    /// The machine's clock and the runtime's timers.
    pub const fn machine() -> Clock {
        Clock(Source::Machine)
    }

    /// Now, for durations and deadlines.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::Machine => Instant::now(),
            #[cfg(any(test, feature = "test-util"))]
            Source::Manual(shared) => shared.now(),
        }
    }

    /// The time of day, for signatures and logs. It may jump; nothing is measured with it.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
    pub fn time_of_day(&self) -> SystemTime {
        match &self.0 {
            Source::Machine => SystemTime::now(),
            #[cfg(any(test, feature = "test-util"))]
            Source::Manual(shared) => shared.time_of_day(),
        }
    }

    /// The moment `wait` from now, at most thirty years from now: `Duration::MAX` is a valid timeout.
    pub fn after(&self, wait: Duration) -> Instant {
        after(self.now(), wait)
    }

    /// Ends after `duration`. Nothing is left behind when it is dropped before.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        match &self.0 {
            Source::Machine => Sleep::Runtime(get_async_runtime().sleep(runtime_duration(duration))),
            #[cfg(any(test, feature = "test-util"))]
            Source::Manual(shared) => Sleep::Manual(manual::Sleeper::new(shared, duration)),
        }
    }

    /// Ends at `deadline`; at once when that has passed.
    pub fn sleep_until(&self, deadline: Instant) -> Sleep {
        self.sleep(deadline.saturating_duration_since(self.now()))
    }

    /// What `work` gives, or `None` when `deadline` comes first; the work is then dropped.
    pub async fn within<F: Future>(&self, deadline: Option<Instant>, work: F) -> Option<F::Output> {
        let Some(deadline) = deadline else { return Some(work.await) };
        let work = std::pin::pin!(work);
        match futures::future::select(work, self.sleep_until(deadline)).await {
            futures::future::Either::Left((output, _)) => Some(output),
            futures::future::Either::Right(((), _)) => None,
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Source::Machine => "Clock(machine)",
            #[cfg(any(test, feature = "test-util"))]
            Source::Manual(_) => "Clock(manual)",
        })
    }
}

/// The runtime counts in its own type, and adds what it is given to the current time.
fn runtime_duration(duration: Duration) -> azure_core::time::Duration {
    azure_core::time::Duration::try_from(duration.min(WAIT_MAX)).unwrap_or(azure_core::time::Duration::ZERO)
}

/// A wait; see [`Clock::sleep`].
pub enum Sleep {
    /// A timer of the runtime.
    Runtime(TaskFuture),
    /// A wait for a test to move time.
    #[cfg(any(test, feature = "test-util"))]
    Manual(manual::Sleeper),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        match self.get_mut() {
            Sleep::Runtime(timer) => timer.as_mut().poll(context),
            #[cfg(any(test, feature = "test-util"))]
            Sleep::Manual(sleeper) => Pin::new(sleeper).poll(context),
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sleep")
    }
}

#[cfg(any(test, feature = "test-util"))]
mod manual {
    use std::collections::BTreeMap;
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::{Arc, Mutex, MutexGuard};
    use std::task::{Context, Poll, Waker};
    use std::time::{Duration, Instant, SystemTime};

    use super::{Clock, Source};

    /// Time that stands still until it is moved.
    #[derive(Clone, Debug)]
    pub struct ManualTime(Arc<Shared>);

    #[derive(Debug)]
    pub(super) struct Shared {
        start: Instant,
        state: Mutex<State>,
    }

    #[derive(Debug, Default)]
    struct State {
        elapsed: Duration,
        next_id: u64,
        sleepers: BTreeMap<(Duration, u64), Waker>,
    }

    impl Default for ManualTime {
        fn default() -> ManualTime {
            ManualTime::new()
        }
    }

    impl ManualTime {
        /// Begins at an arbitrary moment.
        pub fn new() -> ManualTime {
            let start = Clock::machine().now();
            ManualTime(Arc::new(Shared { start, state: Mutex::default() }))
        }

        /// The clock that shows this time.
        pub fn clock(&self) -> Clock {
            Clock(Source::Manual(Arc::clone(&self.0)))
        }

        /// Advances the time and wakes the sleeps whose deadlines have passed, in the order of their deadlines.
        pub fn advance(&self, by: Duration) {
            let mut state = self.0.lock();
            state.elapsed += by;
            let later = (state.elapsed, u64::MAX);
            let waiting = state.sleepers.split_off(&later);
            let due = std::mem::replace(&mut state.sleepers, waiting);
            drop(state);
            due.into_values().for_each(Waker::wake);
        }

        /// Advances the time to the next deadline of a sleep, and returns how far; `None` when there is no sleep.
        pub fn advance_to_next(&self) -> Option<Duration> {
            let by = {
                let state = self.0.lock();
                let ((deadline, _), _) = state.sleepers.first_key_value()?;
                deadline.saturating_sub(state.elapsed)
            };
            self.advance(by);
            Some(by)
        }

        /// How many waits are in progress.
        pub fn sleepers(&self) -> usize {
            self.0.lock().sleepers.len()
        }

        /// How far time was moved.
        pub fn elapsed(&self) -> Duration {
            self.0.lock().elapsed
        }
    }

    impl Shared {
        fn lock(&self) -> MutexGuard<'_, State> {
            crate::sync::lock(&self.state)
        }

        pub(super) fn now(&self) -> Instant {
            self.start + self.lock().elapsed
        }

        pub(super) fn time_of_day(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + self.lock().elapsed
        }
    }

    /// A sleep that ends when the test advances the time.
    #[derive(Debug)]
    pub struct Sleeper {
        shared: Arc<Shared>,
        key: (Duration, u64),
    }

    impl Sleeper {
        pub(super) fn new(shared: &Arc<Shared>, duration: Duration) -> Sleeper {
            let mut state = shared.lock();
            let key = (state.elapsed.saturating_add(duration), state.next_id);
            state.next_id += 1;
            drop(state);
            Sleeper { shared: Arc::clone(shared), key }
        }
    }

    impl Future for Sleeper {
        type Output = ();

        fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
            let mut state = self.shared.lock();
            if self.key.0 <= state.elapsed {
                state.sleepers.remove(&self.key);
                return Poll::Ready(());
            }
            state.sleepers.insert(self.key, context.waker().clone());
            Poll::Pending
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.shared.lock().sleepers.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn manual_time_advances_on_demand_and_wakes_in_order() {
        let time = ManualTime::new();
        let clock = time.clock();
        let start = clock.now();
        let mut late = Box::pin(clock.sleep(3 * SECOND));
        let mut early = Box::pin(clock.sleep(SECOND));
        assert!((&mut late).now_or_never().is_none() && (&mut early).now_or_never().is_none());
        assert_eq!(time.sleepers(), 2);
        assert_eq!(time.advance_to_next(), Some(SECOND));
        assert!((&mut early).now_or_never().is_some());
        assert!((&mut late).now_or_never().is_none());
        assert_eq!(clock.now() - start, SECOND);
        assert_eq!(time.advance_to_next(), Some(2 * SECOND));
        assert!((&mut late).now_or_never().is_some());
        assert_eq!(time.advance_to_next(), None);
        assert_eq!(time.elapsed(), 3 * SECOND);
    }

    #[test]
    fn a_dropped_sleep_leaves_nothing_behind() {
        let time = ManualTime::new();
        let mut sleep = Box::pin(time.clock().sleep(SECOND));
        assert!((&mut sleep).now_or_never().is_none());
        drop(sleep);
        assert_eq!(time.sleepers(), 0);
    }

    #[test]
    fn work_past_its_deadline_is_dropped() {
        let time = ManualTime::new();
        let clock = time.clock();
        let deadline = Some(clock.now() + SECOND);
        assert_eq!(clock.within(deadline, async { 7 }).now_or_never(), Some(Some(7)));
        assert_eq!(clock.within(None, async { 7 }).now_or_never(), Some(Some(7)));
        let mut waiting = Box::pin(clock.within(deadline, futures::future::pending::<()>()));
        assert!((&mut waiting).now_or_never().is_none());
        time.advance(SECOND);
        assert_eq!((&mut waiting).now_or_never(), Some(None));
    }

    #[test]
    fn a_wait_beyond_all_bounds_is_a_long_wait() {
        assert!(runtime_duration(Duration::MAX) > azure_core::time::Duration::days(365));
        let now = Clock::machine().now();
        assert!(after(now, Duration::MAX) > after(now, 1_000_000 * SECOND));
        assert_eq!(after(now, SECOND), now + SECOND);
        let far = after(now, Duration::MAX);
        assert!(after(far, Duration::MAX) >= far, "adding to the far future works as well");
    }

    #[tokio::test]
    async fn the_runtime_can_sleep_for_ever() {
        let mut sleep = Box::pin(Clock::machine().sleep(Duration::MAX));
        assert!((&mut sleep).now_or_never().is_none());
        let mut sleep = Box::pin(Clock::machine().sleep_until(Clock::machine().after(Duration::MAX)));
        assert!((&mut sleep).now_or_never().is_none());
    }
}
