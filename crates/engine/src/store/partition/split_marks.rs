//! Marks on a partition that is being split or merged: what clients are told meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What clients are told about a partition that is being split or merged. A later one includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SplitMark {
    /// The list of ranges shows it as splitting, and it serves as before.
    Announced,
    /// Requests that name its range id get 410/1007.
    Locked,
    /// Every request to it gets 410/1007.
    Swapping,
}

/// Until when each mark applies, in milliseconds of uptime, by the order of [`SplitMark`]. Zero: it does not.
#[derive(Debug, Default)]
pub(super) struct SplitMarks([AtomicU64; 3]);

impl SplitMarks {
    /// Sets a mark until an uptime, when it ends by itself, and removes the others. Zero removes all of them.
    pub(super) fn set(&self, mark: SplitMark, until: Duration) {
        let until_ms = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        for (slot, own) in self.0.iter().zip([SplitMark::Announced, SplitMark::Locked, SplitMark::Swapping]) {
            // Release pairs with the acquire below: who sees the mark sees what was done before it.
            slot.store(if own == mark { until_ms } else { 0 }, Ordering::Release);
        }
    }

    /// Whether this mark, or one that includes it, applies at an uptime.
    pub(super) fn has(&self, mark: SplitMark, uptime: Duration) -> bool {
        let applies = |slot: &AtomicU64| {
            let until_ms = slot.load(Ordering::Acquire);
            until_ms != 0 && uptime.as_millis() < u128::from(until_ms)
        };
        self.0[mark as usize..].iter().any(applies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_includes_the_weaker_ones_and_ends_by_itself() {
        let marks = SplitMarks::default();
        let all = [SplitMark::Announced, SplitMark::Locked, SplitMark::Swapping];
        let at = |seconds| all.map(|mark| marks.has(mark, Duration::from_secs(seconds)));
        assert_eq!(at(0), [false; 3]);
        marks.set(SplitMark::Swapping, Duration::from_secs(5));
        assert_eq!((at(4), at(5)), ([true; 3], [false; 3]));
        marks.set(SplitMark::Announced, Duration::MAX);
        assert_eq!(at(9), [true, false, false]);
        marks.set(SplitMark::Locked, Duration::from_secs(10));
        assert_eq!(at(9), [true, true, false]);
        marks.set(SplitMark::Locked, Duration::ZERO);
        assert_eq!(at(9), [false; 3]);
    }
}
