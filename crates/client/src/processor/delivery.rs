//! What is tried next with a batch whose handler fails. Pure.
//!
//! Without a dead-letter hook a batch is tried until it succeeds, ever more slowly. With one, a batch that has
//! used up its attempts is halved again and again, until what fails is a single change; that one gets attempts
//! of its own and then goes to the hook. Pieces are delivered in order, one after the other.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How failures are met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FailurePolicy {
    /// Attempts with a batch, and with a change on its own, before it is given up.
    pub(super) attempts_max: u32,
    /// The wait after the first failure; each further one doubles it.
    pub(super) wait_first: Duration,
    /// The longest wait.
    pub(super) wait_max: Duration,
    /// Whether there is somebody who takes what was given up.
    pub(super) has_hook: bool,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The handler said so; it may succeed next time.
    Handler,
    /// A change is not what the handler takes, and never will be.
    Unreadable,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Hand these changes to the handler.
    Deliver(Range<usize>),
    /// Hand this change to the hook.
    GiveUp {
        /// Which.
        change: usize,
        /// How often it was handed to the handler on its own.
        attempts: u32,
    },
    /// All were handled or given up.
    Done,
}

/// A batch on its way through the handler.
#[derive(Debug)]
pub(super) struct Delivery {
    policy: FailurePolicy,
    pieces: VecDeque<Piece>,
    /// Failures in a row, whatever failed.
    failures: u32,
}

#[derive(Clone, Debug)]
struct Piece {
    changes: Range<usize>,
    attempts: u32,
    /// A half of what has failed often enough.
    is_half: bool,
    is_given_up: bool,
}

impl Delivery {
    /// A batch of this many changes.
    pub(super) fn new(changes: usize, policy: FailurePolicy) -> Delivery {
        let whole = Piece { changes: 0..changes, attempts: 0, is_half: false, is_given_up: false };
        let pieces = if changes == 0 { VecDeque::new() } else { VecDeque::from([whole]) };
        Delivery { policy, pieces, failures: 0 }
    }

    /// What is to be done next.
    pub(super) fn step(&self) -> Step {
        match self.pieces.front() {
            None => Step::Done,
            Some(piece) if piece.is_given_up => {
                Step::GiveUp { change: piece.changes.start, attempts: piece.attempts }
            }
            Some(piece) => Step::Deliver(piece.changes.clone()),
        }
    }

    /// How often the changes of the step have been tried before.
    pub(super) fn attempts(&self) -> u32 {
        self.pieces.front().map_or(0, |piece| piece.attempts)
    }

    /// The step succeeded.
    pub(super) fn succeeded(&mut self) {
        self.pieces.pop_front();
        self.failures = 0;
    }

    /// The step failed. Gives the wait before the next; `dice` is a value in `0.0..1.0`.
    pub(super) fn failed(&mut self, failure: Failure, dice: f64) -> Duration {
        let policy = self.policy;
        let Some(piece) = self.pieces.front_mut() else { return Duration::ZERO };
        self.failures = self.failures.saturating_add(1);
        let wait = backoff(&policy, self.failures, dice);
        if piece.is_given_up {
            return wait;
        }
        piece.attempts = piece.attempts.saturating_add(1);
        let alone = piece.changes.len() == 1;
        let attempts_max = match failure {
            Failure::Unreadable => 1,
            Failure::Handler if piece.is_half && !alone => 1,
            Failure::Handler => policy.attempts_max,
        };
        if !policy.has_hook || piece.attempts < attempts_max {
            return wait;
        }
        if alone {
            piece.is_given_up = true;
            return Duration::ZERO;
        }
        let Range { start, end } = piece.changes.clone();
        let middle = start + (end - start) / 2;
        self.pieces.pop_front();
        for changes in [middle..end, start..middle] {
            self.pieces.push_front(Piece { changes, attempts: 0, is_half: true, is_given_up: false });
        }
        Duration::ZERO
    }
}

/// The wait after this many failures in a row: doubling up to the longest, a quarter more or less.
fn backoff(policy: &FailurePolicy, failures: u32, dice: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(20);
    let wait = policy.wait_first.saturating_mul(1 << doublings).min(policy.wait_max);
    wait.mul_f64(0.75 + dice * 0.5).min(policy.wait_max)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: FailurePolicy = FailurePolicy {
        attempts_max: 3,
        wait_first: Duration::from_millis(100),
        wait_max: Duration::from_secs(1),
        has_hook: true,
    };

    /// Delivers `changes` changes of which some are bad; says what was handed out, in order.
    fn deliver(changes: usize, policy: FailurePolicy, bad: impl Fn(usize) -> Option<Failure>) -> Vec<String> {
        let mut delivery = Delivery::new(changes, policy);
        let mut story = Vec::new();
        loop {
            match delivery.step() {
                Step::Done => return story,
                Step::GiveUp { change, attempts } => {
                    story.push(format!("!{change} after {attempts}"));
                    delivery.succeeded();
                }
                Step::Deliver(range) => {
                    story.push(format!("{}-{}", range.start, range.end - 1));
                    match range.clone().find_map(&bad) {
                        None => delivery.succeeded(),
                        Some(failure) => drop(delivery.failed(failure, 0.5)),
                    }
                }
            }
            assert!(story.len() < 100, "it goes on for ever: {story:?}");
        }
    }

    #[test]
    fn what_is_good_is_delivered_at_once() {
        assert_eq!(deliver(4, POLICY, |_| None), ["0-3"]);
        assert!(deliver(0, POLICY, |_| None).is_empty());
    }

    #[test]
    fn only_the_bad_change_goes_to_the_hook_and_the_order_is_kept() {
        let story = deliver(4, POLICY, |change| (change == 2).then_some(Failure::Handler));
        assert_eq!(story, ["0-3", "0-3", "0-3", "0-1", "2-3", "2-2", "2-2", "2-2", "!2 after 3", "3-3"]);
    }

    #[test]
    fn what_cannot_be_read_is_not_tried_again() {
        let story = deliver(2, POLICY, |change| (change == 0).then_some(Failure::Unreadable));
        assert_eq!(story, ["0-1", "0-0", "!0 after 1", "1-1"]);
    }

    #[test]
    fn without_a_hook_the_whole_is_tried_for_ever_and_ever_more_slowly() {
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
    fn a_hook_that_fails_is_asked_again_and_nothing_is_skipped() {
        let mut delivery = Delivery::new(1, FailurePolicy { attempts_max: 1, ..POLICY });
        assert_eq!(delivery.failed(Failure::Handler, 0.5), Duration::ZERO);
        for expected in [200, 400, 800, 1000, 1000] {
            assert_eq!(delivery.step(), Step::GiveUp { change: 0, attempts: 1 });
            assert_eq!(delivery.failed(Failure::Handler, 0.5).as_millis(), expected);
        }
        delivery.succeeded();
        assert_eq!(delivery.step(), Step::Done);
    }
}
