//! The current time as stored documents have it: milliseconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// A time in milliseconds since 1970, with fractions that order what happens within one millisecond.
///
/// A double has a resolution of a quarter of a microsecond at today's times.
pub(crate) type Millis = f64;

/// The step between two timestamps that would otherwise be equal: a microsecond.
const STEP: Millis = 0.001;

/// The current time in milliseconds.
pub(crate) fn now() -> Millis {
    #[expect(clippy::disallowed_methods, reason = "the one place of this crate that reads the time")]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as Millis / 1000.0
}

/// The milliseconds of a duration. Durations beyond ten thousand years count as that.
pub(crate) fn millis(duration: Duration) -> Millis {
    const LONGEST: Millis = 1e4 * 366.0 * 86_400_000.0;
    (duration.as_secs_f64() * 1000.0).min(LONGEST)
}

/// How long it takes from `now` to `then`; zero if that has passed.
pub(crate) fn until(then: Millis, now: Millis) -> Duration {
    Duration::try_from_secs_f64((then - now).max(0.0) / 1000.0).unwrap_or(Duration::MAX)
}

/// Timestamps that are never equal, so that they order what one process enqueues.
#[derive(Debug, Default)]
pub(crate) struct Timestamps(Mutex<Millis>);

impl Timestamps {
    /// The current time, or a microsecond after the last timestamp if that is later.
    pub(crate) fn next(&self) -> Millis {
        self.after(now())
    }

    fn after(&self, now: Millis) -> Millis {
        let mut last = self.0.lock();
        *last = if now > *last { now } else { *last + STEP };
        *last
    }
}

/// A time as the key of a map or queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OrderedTime(pub(crate) Millis);

impl Eq for OrderedTime {}

impl PartialOrd for OrderedTime {
    fn partial_cmp(&self, other: &OrderedTime) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedTime {
    fn cmp(&self, other: &OrderedTime) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_of_one_instant_differ_and_are_in_order() {
        let timestamps = Timestamps::default();
        let taken: Vec<Millis> = (0..1000).map(|_| timestamps.after(1.8e12)).collect();
        assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(taken[999] < 1.8e12 + 1.01);
        assert_eq!(timestamps.after(1.8e12 + 5.0), 1.8e12 + 5.0);
    }

    #[test]
    fn the_longest_duration_is_a_time() {
        assert!(millis(Duration::MAX).is_finite());
        assert_eq!(until(1.0, 5.0), Duration::ZERO);
        assert_eq!(until(1500.0, 500.0), Duration::from_secs(1));
    }
}
