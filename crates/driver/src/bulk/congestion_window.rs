//! The congestion window: how many operations of one partition may be in flight. Pure.
//!
//! The window grows while responses are successful and fast: by the operations that succeeded until the first
//! throttling, which doubles it with each round trip, and by a few operations per round trip from then on. A
//! partition that throttles shrinks it by half of the share it throttled; one that is slow, or fails, shrinks it,
//! too. Requests that were sent before the window shrank say nothing new, so it shrinks once per round trip.

use std::time::{Duration, Instant};

/// Operations added per round trip once the partition has throttled.
const STEP: f64 = 5.0;
/// A response that takes longer does not grow the window.
const SLOW: Duration = Duration::from_millis(500);
/// A response that takes longer shrinks the window a little.
const TOO_SLOW: Duration = Duration::from_secs(2);
/// The smallest share by which throttling shrinks the window, and the share for slowness.
const CUT_LEAST: f64 = 0.1;
/// The share by which a failure shrinks the window, and the largest one for throttling.
const CUT_MOST: f64 = 0.5;

/// The window of one partition, in operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CongestionWindow {
    operations: f64,
    /// The size at which doubling ends.
    threshold: f64,
    /// When the window last shrank.
    cut_at: Option<Instant>,
}

/// The bounds of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Operations of one request.
    pub(super) batch: usize,
    /// Requests at a time.
    pub(super) batches: usize,
}

/// What one response says about the partition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Feedback {
    /// When the request was sent.
    pub(super) sent_at: Instant,
    /// How long it took.
    pub(super) took: Duration,
    /// How many operations the request had.
    pub(super) operations: usize,
    /// How many of the operations were throttled.
    pub(super) throttled: usize,
    /// Whether the partition could not be reached or failed.
    pub(super) failed: bool,
    /// Whether more operations were waiting than the window allowed.
    pub(super) was_full: bool,
}

impl CongestionWindow {
    /// The initial window of a partition: one request.
    pub(super) fn new(bounds: Bounds) -> CongestionWindow {
        CongestionWindow { operations: bounds.batch as f64, threshold: f64::INFINITY, cut_at: None }
    }

    /// How many operations may be in flight.
    pub(super) fn operations(&self) -> usize {
        (self.operations as usize).max(1)
    }

    /// How many operations the next request may have.
    pub(super) fn batch_operations(&self, bounds: Bounds) -> usize {
        self.operations().min(bounds.batch)
    }

    /// How many requests may be in flight.
    pub(super) fn batches(&self, bounds: Bounds) -> usize {
        (self.operations() / bounds.batch).max(1)
    }

    /// The window after a response.
    #[must_use]
    pub(super) fn after(self, feedback: &Feedback, bounds: Bounds, now: Instant) -> CongestionWindow {
        let throttled_share = feedback.throttled as f64 / feedback.operations.max(1) as f64;
        let cut = if feedback.failed {
            CUT_MOST
        } else if feedback.throttled > 0 {
            (throttled_share * CUT_MOST).max(CUT_LEAST)
        } else if feedback.took > TOO_SLOW {
            CUT_LEAST
        } else {
            return self.opened(feedback, bounds);
        };
        if self.cut_at.is_some_and(|cut_at| feedback.sent_at < cut_at) {
            return self;
        }
        let operations = (self.operations * (1.0 - cut)).max(1.0);
        CongestionWindow { operations, threshold: operations, cut_at: Some(now) }
    }

    fn opened(self, feedback: &Feedback, bounds: Bounds) -> CongestionWindow {
        if !feedback.was_full || feedback.took > SLOW {
            return self;
        }
        let completed = feedback.operations as f64;
        let more = if self.operations < self.threshold {
            completed
        } else {
            STEP * completed / self.operations.max(completed)
        };
        let most = (bounds.batch * bounds.batches) as f64;
        CongestionWindow { operations: (self.operations + more).min(most), ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::ManualTime;

    const BOUNDS: Bounds = Bounds { batch: 100, batches: 16 };

    fn clean(operations: usize, sent_at: Instant) -> Feedback {
        let took = Duration::from_millis(10);
        Feedback { sent_at, took, operations, throttled: 0, failed: false, was_full: true }
    }

    fn opened_to(operations: f64) -> CongestionWindow {
        CongestionWindow { operations, threshold: operations, cut_at: None }
    }

    #[test]
    fn the_window_doubles_with_each_round_trip_until_it_is_throttled() {
        let now = ManualTime::new().clock().now();
        let mut window = CongestionWindow::new(BOUNDS);
        for expected in [200, 400, 800, 1600, 1600] {
            for _ in 0..window.batches(BOUNDS) {
                window = window.after(&clean(100, now), BOUNDS, now);
            }
            assert_eq!(window.operations(), expected);
        }
        assert_eq!((window.batches(BOUNDS), window.batch_operations(BOUNDS)), (16, 100));
        let throttled = Feedback { throttled: 100, ..clean(100, now) };
        window = window.after(&throttled, BOUNDS, now);
        assert_eq!(window.operations(), 800);
        for _ in 0..8 {
            window = window.after(&clean(100, now), BOUNDS, now);
        }
        assert!((804..=805).contains(&window.operations()), "a step per round trip: {window:?}");
    }

    #[test]
    fn the_window_shrinks_by_half_of_the_throttled_share_once_per_round_trip() {
        let start = ManualTime::new().clock().now();
        let later = start + Duration::from_millis(20);
        for (throttled, failed, took, expected) in [
            (0, false, 10, 400),
            (1, false, 10, 360),
            (50, false, 10, 300),
            (100, false, 10, 200),
            (0, true, 10, 200),
            (0, false, 2_500, 360),
            (0, false, 600, 400),
        ] {
            let feedback = Feedback {
                throttled,
                failed,
                took: Duration::from_millis(took),
                was_full: false,
                ..clean(100, start)
            };
            let closed = opened_to(400.0).after(&feedback, BOUNDS, later);
            assert_eq!(closed.operations(), expected, "{throttled} {failed} {took}");
            assert_eq!(closed.after(&feedback, BOUNDS, later).operations(), expected, "sent before that");
        }
    }

    #[test]
    fn a_window_below_one_request_limits_its_size() {
        let window = opened_to(7.9);
        assert_eq!((window.batch_operations(BOUNDS), window.batches(BOUNDS)), (7, 1));
        let window = opened_to(250.0);
        assert_eq!((window.batch_operations(BOUNDS), window.batches(BOUNDS)), (100, 2));
    }

    #[test]
    fn one_that_was_not_full_stays_as_it_is() {
        let now = ManualTime::new().clock().now();
        let idle = Feedback { was_full: false, ..clean(3, now) };
        assert_eq!(CongestionWindow::new(BOUNDS).after(&idle, BOUNDS, now), CongestionWindow::new(BOUNDS));
    }

    proptest! {
        #[test]
        fn the_window_stays_within_its_bounds(
            responses in prop::collection::vec((1_usize..=100, 0_usize..=100, any::<bool>(), 0_u64..4000), 0..200),
        ) {
            let time = ManualTime::new();
            let mut window = CongestionWindow::new(BOUNDS);
            for (operations, throttled, failed, took) in responses {
                let sent_at = time.clock().now();
                time.advance(Duration::from_millis(took));
                let feedback = Feedback {
                    sent_at,
                    took: Duration::from_millis(took),
                    operations,
                    throttled: throttled.min(operations),
                    failed,
                    was_full: true,
                };
                window = window.after(&feedback, BOUNDS, time.clock().now());
                prop_assert!((1..=1600).contains(&window.operations()));
                prop_assert!((1..=100).contains(&window.batch_operations(BOUNDS)));
                prop_assert!((1..=16).contains(&window.batches(BOUNDS)));
            }
        }
    }
}
