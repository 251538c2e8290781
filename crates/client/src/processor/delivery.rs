//! Decides how a batch whose handler fails is retried. Pure.
//!
//! Without a dead-letter hook the batch is retried until it succeeds, with growing waits. With one, a batch that has
//! used up its attempts is halved repeatedly, until a single change fails; that change gets attempts of its own and
//! then goes to the hook. The sub-batches are delivered one after the other, in the order of the feed.
#![warn(clippy::wildcard_enum_match_arm, reason = "a new case must be decided on")]

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How failures of the handler are retried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FailurePolicy {
    /// Attempts with a whole batch before it is halved, and with a single change before it becomes a dead letter.
    pub(super) attempts_max: u32,
    /// The wait after the first failure; each further one doubles it.
    pub(super) wait_first: Duration,
    /// The longest wait between two attempts.
    pub(super) wait_max: Duration,
    /// Whether there is a dead-letter hook.
    pub(super) has_hook: bool,
}

/// Why an attempt to handle changes failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The handler returned an error or panicked; it may succeed next time.
    Handler,
    /// A change cannot be deserialized into the handler's type, so a retry cannot succeed.
    Unreadable,
}

/// The next step in the delivery of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Call the handler with these changes.
    Deliver(Range<usize>),
    /// Call the dead-letter hook with this change.
    DeadLetter {
        /// The index of the change in the batch.
        change: usize,
        /// How often the handler was called with this change alone.
        attempts: u32,
    },
    /// All changes were handled or became dead letters.
    Done,
}

/// The delivery of one batch to the handler.
#[derive(Debug)]
pub(super) struct Delivery {
    policy: FailurePolicy,
    sub_batches: VecDeque<SubBatch>,
    /// The number of consecutive failures, of the handler and of the hook.
    failures: u32,
}

#[derive(Clone, Debug)]
struct SubBatch {
    changes: Range<usize>,
    attempts: u32,
    /// Whether it is a half of a batch that has used up its attempts.
    is_half: bool,
    is_dead_letter: bool,
}

impl Delivery {
    /// The delivery of a batch of this many changes.
    pub(super) fn new(changes: usize, policy: FailurePolicy) -> Delivery {
        let whole = SubBatch { changes: 0..changes, attempts: 0, is_half: false, is_dead_letter: false };
        let pieces = if changes == 0 { VecDeque::new() } else { VecDeque::from([whole]) };
        Delivery { policy, sub_batches: pieces, failures: 0 }
    }

    /// The next step; [`succeeded`](Delivery::succeeded) or [`failed`](Delivery::failed) moves on from it.
    pub(super) fn step(&self) -> Step {
        match self.sub_batches.front() {
            None => Step::Done,
            Some(sub_batch) if sub_batch.is_dead_letter => {
                Step::DeadLetter { change: sub_batch.changes.start, attempts: sub_batch.attempts }
            }
            Some(sub_batch) => Step::Deliver(sub_batch.changes.clone()),
        }
    }

    /// How often the changes of the current step have been tried before.
    pub(super) fn attempts(&self) -> u32 {
        self.sub_batches.front().map_or(0, |sub_batch| sub_batch.attempts)
    }

    /// Records that the current step succeeded.
    pub(super) fn succeeded(&mut self) {
        self.sub_batches.pop_front();
        self.failures = 0;
    }

    /// Records that the current step failed. Returns the wait before the next one; `jitter` is in `0.0..1.0`.
    pub(super) fn failed(&mut self, failure: Failure, jitter: f64) -> Duration {
        let policy = self.policy;
        let Some(sub_batch) = self.sub_batches.front_mut() else { return Duration::ZERO };
        self.failures = self.failures.saturating_add(1);
        let wait = backoff(&policy, self.failures, jitter);
        if sub_batch.is_dead_letter {
            return wait;
        }
        sub_batch.attempts = sub_batch.attempts.saturating_add(1);
        let alone = sub_batch.changes.len() == 1;
        let attempts_max = match failure {
            Failure::Unreadable => 1,
            Failure::Handler if sub_batch.is_half && !alone => 1,
            Failure::Handler => policy.attempts_max,
        };
        if !policy.has_hook || sub_batch.attempts < attempts_max {
            return wait;
        }
        if alone {
            sub_batch.is_dead_letter = true;
            return Duration::ZERO;
        }
        let Range { start, end } = sub_batch.changes.clone();
        let middle = start + (end - start) / 2;
        self.sub_batches.pop_front();
        for changes in [middle..end, start..middle] {
            self.sub_batches.push_front(SubBatch {
                changes,
                attempts: 0,
                is_half: true,
                is_dead_letter: false,
            });
        }
        Duration::ZERO
    }
}

/// The wait after this many consecutive failures: it doubles up to the longest, a quarter more or less by jitter.
fn backoff(policy: &FailurePolicy, failures: u32, jitter: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    let wait = policy.wait_first.saturating_mul(1 << doublings).min(policy.wait_max);
    with_jitter(wait, jitter).min(policy.wait_max)
}

/// The wait, a quarter more or less: `jitter` is in `0.0..1.0`.
///
/// In thousandths, because multiplying the longest duration by a fraction above one would panic.
pub(super) fn with_jitter(wait: Duration, jitter: f64) -> Duration {
    let thousandths = (750.0 + jitter.clamp(0.0, 1.0) * 500.0) as u32;
    (wait / 1000).saturating_mul(thousandths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_a_quarter_either_way_of_any_wait() {
        let second = Duration::from_secs(1);
        assert_eq!(with_jitter(second, 0.0), Duration::from_millis(750));
        assert_eq!(with_jitter(second, 0.5), second);
        assert_eq!(with_jitter(second, 1.0), Duration::from_millis(1250));
        assert_eq!(with_jitter(Duration::MAX, 1.0), Duration::MAX);
        assert_eq!(with_jitter(Duration::ZERO, 1.0), Duration::ZERO);
    }

    const POLICY: FailurePolicy = FailurePolicy {
        attempts_max: 3,
        wait_first: Duration::from_millis(100),
        wait_max: Duration::from_secs(1),
        has_hook: true,
    };

    /// Delivers `changes` changes of which some fail; returns the steps in order.
    fn deliver(changes: usize, policy: FailurePolicy, bad: impl Fn(usize) -> Option<Failure>) -> Vec<String> {
        let mut delivery = Delivery::new(changes, policy);
        let mut steps = Vec::new();
        loop {
            match delivery.step() {
                Step::Done => return steps,
                Step::DeadLetter { change, attempts } => {
                    steps.push(format!("!{change} after {attempts}"));
                    delivery.succeeded();
                }
                Step::Deliver(range) => {
                    steps.push(format!("{}-{}", range.start, range.end - 1));
                    match range.clone().find_map(&bad) {
                        None => delivery.succeeded(),
                        Some(failure) => drop(delivery.failed(failure, 0.5)),
                    }
                }
            }
            assert!(steps.len() < 100, "the delivery does not end: {steps:?}");
        }
    }

    #[test]
    fn a_batch_that_succeeds_is_delivered_once() {
        assert_eq!(deliver(4, POLICY, |_| None), ["0-3"]);
        assert!(deliver(0, POLICY, |_| None).is_empty());
    }

    #[test]
    fn only_the_failing_change_goes_to_the_hook_and_the_order_stays() {
        let steps = deliver(4, POLICY, |change| (change == 2).then_some(Failure::Handler));
        assert_eq!(steps, ["0-3", "0-3", "0-3", "0-1", "2-3", "2-2", "2-2", "2-2", "!2 after 3", "3-3"]);
    }

    #[test]
    fn a_change_that_cannot_be_deserialized_is_not_retried() {
        let steps = deliver(2, POLICY, |change| (change == 0).then_some(Failure::Unreadable));
        assert_eq!(steps, ["0-1", "0-0", "!0 after 1", "1-1"]);
    }

    #[test]
    fn without_a_hook_the_batch_is_retried_forever_with_growing_waits() {
        let mut delivery = Delivery::new(4, FailurePolicy { has_hook: false, ..POLICY });
        let mut waits = Vec::new();
        for attempt in 0..40 {
            assert_eq!((delivery.step(), delivery.attempts()), (Step::Deliver(0..4), attempt));
            waits.push(delivery.failed(Failure::Handler, 0.5).as_millis());
        }
        assert_eq!(waits[..5], [100, 200, 400, 800, 1000]);
        assert!(waits[5..].iter().all(|wait| *wait == 1000));
        delivery.succeeded();
        assert_eq!(delivery.step(), Step::Done);
    }

    #[test]
    fn a_hook_that_fails_is_retried_and_no_change_is_skipped() {
        let mut delivery = Delivery::new(1, FailurePolicy { attempts_max: 1, ..POLICY });
        assert_eq!(delivery.failed(Failure::Handler, 0.5), Duration::ZERO);
        for expected in [200, 400, 800, 1000, 1000] {
            assert_eq!(delivery.step(), Step::DeadLetter { change: 0, attempts: 1 });
            assert_eq!(delivery.failed(Failure::Handler, 0.5).as_millis(), expected);
        }
        delivery.succeeded();
        assert_eq!(delivery.step(), Step::Done);
    }
}
