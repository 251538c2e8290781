//! The operations that wait for one physical partition, and the batches they are sent in. Pure: time is an
//! argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::congestion_window::{Bounds, CongestionWindow, Feedback};
use super::operation::BulkOperation;
use super::options::BulkOptions;
use super::outcome::OperationState;
use crate::clock::after;

/// An operation that has no response yet.
#[derive(Debug)]
pub(super) struct Pending {
    /// The index of the operation in the input.
    pub(super) index: u64,
    pub(super) operation: BulkOperation,
    /// When the operation was accepted.
    pub(super) accepted_at: Instant,
    /// When it was sent for the first time.
    pub(super) first_sent: Option<Instant>,
    /// How often it was sent.
    pub(super) attempts: u32,
    /// The request units of all attempts.
    pub(super) charge: f64,
    /// Whether one of the attempts may have been carried out.
    pub(super) maybe_applied: bool,
    /// The largest batch that it may be sent in.
    pub(super) batch_size_max: usize,
}

impl Pending {
    /// An operation that was just accepted.
    pub(super) fn new(index: u64, operation: BulkOperation, now: Instant) -> Pending {
        Pending {
            index,
            operation,
            accepted_at: now,
            first_sent: None,
            attempts: 0,
            charge: 0.0,
            maybe_applied: false,
            batch_size_max: usize::MAX,
        }
    }

    /// The properties its outcome depends on, after it was sent in a batch of this size.
    pub(super) fn state(&self, together: usize) -> OperationState {
        OperationState {
            kind: self.operation.kind(),
            conditional: self.operation.is_conditional(),
            repeatable: self.operation.may_be_repeated(),
            maybe_applied: self.maybe_applied,
            sent_alone: together == 1,
        }
    }
}

/// The limits of batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchLimits {
    pub(super) bounds: Bounds,
    pub(super) batch_bytes_max: usize,
    pub(super) linger: Duration,
}

impl BatchLimits {
    pub(super) fn of(options: &BulkOptions) -> BatchLimits {
        let bounds =
            Bounds { batch: options.batch_operations(), batches: options.requests_per_partition_max.get() };
        BatchLimits { bounds, batch_bytes_max: options.batch_bytes_max, linger: options.linger }
    }
}

/// The queue of one partition.
#[derive(Debug)]
pub(super) struct PartitionQueue {
    queue: VecDeque<Pending>,
    queued_bytes: usize,
    window: CongestionWindow,
    /// Requests in flight to the partition.
    in_flight: usize,
    /// Nothing is sent before this time.
    resume_at: Option<Instant>,
    /// Consecutive failures of the partition.
    pub(super) failures: u32,
    /// When the partition last accepted an operation.
    pub(super) progress_at: Option<Instant>,
    /// Whether the partition responded with 410.
    pub(super) gone: bool,
}

impl PartitionQueue {
    pub(super) fn new(limits: &BatchLimits) -> PartitionQueue {
        PartitionQueue {
            queue: VecDeque::new(),
            queued_bytes: 0,
            window: CongestionWindow::new(limits.bounds),
            in_flight: 0,
            resume_at: None,
            failures: 0,
            progress_at: None,
            gone: false,
        }
    }

    /// Whether the queue is empty and no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.in_flight == 0
    }

    /// How many operations may be in flight.
    pub(super) fn window(&self) -> usize {
        self.window.operations()
    }

    /// Appends an operation to the queue.
    pub(super) fn push(&mut self, pending: Pending) {
        self.queued_bytes += pending.operation.bytes();
        self.queue.push_back(pending);
    }

    /// Puts operations back at the front of the queue, in their order.
    pub(super) fn requeue(&mut self, again: Vec<Pending>) {
        for pending in again.into_iter().rev() {
            self.queued_bytes += pending.operation.bytes();
            self.queue.push_front(pending);
        }
    }

    /// Removes and returns everything that waits.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Pending> {
        self.queued_bytes = 0;
        std::mem::take(&mut self.queue).into_iter()
    }

    /// Sends nothing before `at`.
    pub(super) fn pause_until(&mut self, at: Instant) {
        self.resume_at = self.resume_at.max(Some(at));
    }

    /// When the next request may be sent; none while the window is full or the queue empty. With `flush` no
    /// further operations are waited for.
    pub(super) fn next_send_at(&self, limits: &BatchLimits, flush: bool) -> Option<Instant> {
        let front = self.queue.front()?;
        if self.in_flight >= self.window.batches(limits.bounds) {
            return None;
        }
        let is_full = self.queue.len() >= self.window.batch_operations(limits.bounds)
            || self.queued_bytes >= limits.batch_bytes_max;
        let at = if flush || is_full { front.accepted_at } else { after(front.accepted_at, limits.linger) };
        Some(self.resume_at.map_or(at, |resume_at| resume_at.max(at)))
    }

    /// Takes the operations of the next batch: as many as the window, the service and each of them allow.
    pub(super) fn take(&mut self, limits: &BatchLimits, now: Instant) -> Vec<Pending> {
        let mut batch: Vec<Pending> = Vec::new();
        let mut most = self.window.batch_operations(limits.bounds);
        let mut bytes = 0;
        while let Some(next) = self.queue.front() {
            let size = next.operation.bytes();
            most = most.min(next.batch_size_max);
            if !batch.is_empty() && (batch.len() >= most || bytes + size > limits.batch_bytes_max) {
                break;
            }
            bytes += size;
            let mut next = self.queue.pop_front().expect("there is a front");
            next.attempts += 1;
            next.first_sent.get_or_insert(now);
            batch.push(next);
        }
        self.queued_bytes -= bytes;
        self.in_flight += 1;
        batch
    }

    /// Ends a request and updates the congestion window.
    pub(super) fn complete(&mut self, feedback: &Feedback, limits: &BatchLimits, now: Instant) {
        self.in_flight -= 1;
        let feedback = Feedback { was_full: !self.queue.is_empty(), ..*feedback };
        self.window = self.window.after(&feedback, limits.bounds, now);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::partition::PartitionKey;

    use super::*;
    use crate::clock::ManualTime;

    const LIMITS: BatchLimits = BatchLimits {
        bounds: Bounds { batch: 100, batches: 4 },
        batch_bytes_max: 10_000,
        linger: Duration::from_millis(10),
    };

    fn pending(index: u64, bytes: usize, now: Instant) -> Pending {
        Pending::new(index, BulkOperation::upsert(PartitionKey::single("k"), vec![b' '; bytes]), now)
    }

    fn indices(batch: &[Pending]) -> Vec<u64> {
        batch.iter().map(|pending| pending.index).collect()
    }

    #[test]
    fn a_request_waits_for_more_operations_unless_it_is_full_or_the_input_ended() {
        let now = ManualTime::new().clock().now();
        let mut queue = PartitionQueue::new(&LIMITS);
        assert_eq!(queue.next_send_at(&LIMITS, true), None);
        queue.push(pending(0, 10, now));
        assert_eq!(queue.next_send_at(&LIMITS, false), Some(now + LIMITS.linger));
        assert_eq!(queue.next_send_at(&LIMITS, true), Some(now));
        queue.push(pending(1, 10_000, now));
        assert_eq!(queue.next_send_at(&LIMITS, false), Some(now), "enough bytes");
        let mut queue = PartitionQueue::new(&LIMITS);
        (0..100).for_each(|index| queue.push(pending(index, 0, now)));
        assert_eq!(queue.next_send_at(&LIMITS, false), Some(now), "enough operations");
        queue.pause_until(now + Duration::from_secs(1));
        queue.pause_until(now + Duration::from_millis(1));
        assert_eq!(queue.next_send_at(&LIMITS, true), Some(now + Duration::from_secs(1)));
    }

    #[test]
    fn a_large_item_travels_alone_and_the_others_in_order() {
        let now = ManualTime::new().clock().now();
        let mut queue = PartitionQueue::new(&LIMITS);
        for (index, bytes) in [(0, 10), (1, 10), (2, 50_000), (3, 10)] {
            queue.push(pending(index, bytes, now));
        }
        let mut sent = Vec::new();
        while !queue.queue.is_empty() {
            sent.push(indices(&queue.take(&LIMITS, now)));
        }
        assert_eq!(sent, [vec![0, 1], vec![2], vec![3]]);
        assert_eq!(queue.queued_bytes, 0);
    }

    #[test]
    fn batches_that_were_too_large_are_sent_in_smaller_ones() {
        let now = ManualTime::new().clock().now();
        let mut queue = PartitionQueue::new(&LIMITS);
        let mut batch: Vec<Pending> = (0..5).map(|index| pending(index, 1, now)).collect();
        batch.iter_mut().for_each(|pending| pending.batch_size_max = 2);
        queue.push(pending(5, 1, now));
        queue.requeue(batch);
        let sent: Vec<_> = (0..3).map(|_| indices(&queue.take(&LIMITS, now))).collect();
        assert_eq!(sent, [vec![0, 1], vec![2, 3], vec![4, 5]]);
    }

    #[test]
    fn no_more_requests_are_sent_than_the_window_allows() {
        const LIMITS: BatchLimits = BatchLimits { batch_bytes_max: 100_000, ..self::LIMITS };
        let now = ManualTime::new().clock().now();
        let mut queue = PartitionQueue::new(&LIMITS);
        (0..300).for_each(|index| queue.push(pending(index, 0, now)));
        assert_eq!(queue.take(&LIMITS, now).len(), 100);
        assert_eq!(queue.next_send_at(&LIMITS, true), None, "one at first");
        let feedback = Feedback {
            sent_at: now,
            took: Duration::ZERO,
            operations: 100,
            throttled: 0,
            failed: false,
            was_full: false,
        };
        queue.complete(&feedback, &LIMITS, now);
        assert_eq!(queue.window(), 200);
        assert!(queue.next_send_at(&LIMITS, true).is_some());
    }

    proptest! {
        #[test]
        fn requests_hold_every_operation_once_in_order_and_within_the_limits(
            sizes in prop::collection::vec(0_usize..12_000, 1..300),
            together in prop::collection::vec(1_usize..200, 300),
        ) {
            let now = ManualTime::new().clock().now();
            let mut queue = PartitionQueue::new(&LIMITS);
            for (index, size) in sizes.iter().enumerate() {
                let mut one = pending(index as u64, *size, now);
                one.batch_size_max = together[index];
                queue.push(one);
            }
            let mut seen = Vec::new();
            while !queue.queue.is_empty() {
                let batch = queue.take(&LIMITS, now);
                let bytes: usize = batch.iter().map(|pending| pending.operation.bytes()).sum();
                prop_assert!(!batch.is_empty() && batch.len() <= 100);
                prop_assert!(batch.len() == 1 || bytes <= LIMITS.batch_bytes_max);
                prop_assert!(batch.iter().all(|pending| batch.len() <= pending.batch_size_max));
                seen.extend(indices(&batch));
            }
            prop_assert_eq!(seen, (0..sizes.len() as u64).collect::<Vec<_>>());
            prop_assert_eq!(queue.queued_bytes, 0);
        }
    }
}
