//! When the account may be asked again.
//!
//! Pure. Many operations find out at once that the map is out of date; one of them asks, the others wait for
//! its response (`cache`), and none reads them again at once: a response without news doubles the pause.

use std::time::{Duration, Instant};

/// The pause after a response that brought something new.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// The longest pause: at most twelve requests a minute, however long regions stay unavailable.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How often the properties are read while nothing fails.
pub(crate) const REFRESH_INTERVAL: Duration = Duration::from_secs(300);

/// When the account was last asked, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RefreshHistory {
    last: Option<Instant>,
    /// Answers in a row that brought nothing new, or none.
    unchanged: u32,
}

impl RefreshHistory {
    /// Whether the account may be asked now.
    pub(crate) fn may_refresh(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| now.saturating_duration_since(last) >= self.pause())
    }

    /// The history after the account was asked.
    #[must_use]
    pub(crate) fn after_refresh(&self, now: Instant, is_new: bool) -> RefreshHistory {
        RefreshHistory {
            last: Some(now),
            unchanged: if is_new { 0 } else { self.unchanged.saturating_add(1) },
        }
    }

    fn pause(&self) -> Duration {
        PAUSE_MIN.saturating_mul(1 << self.unchanged.min(8)).min(PAUSE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn the_pause_doubles_while_nothing_is_learnt_and_starts_over_with_news() {
        let mut now = Clock::machine().now();
        let mut history = RefreshHistory::default();
        assert!(history.may_refresh(now));
        for pause in [500, 1000, 2000, 4000, 5000, 5000] {
            history = history.after_refresh(now, false);
            let pause = Duration::from_millis(pause);
            assert!(!history.may_refresh(now + pause - MILLISECOND), "{pause:?}");
            assert!(history.may_refresh(now + pause), "{pause:?}");
            now += pause;
        }
        history = history.after_refresh(now, true);
        assert!(!history.may_refresh(now) && history.may_refresh(now + PAUSE_MIN));
    }
}
