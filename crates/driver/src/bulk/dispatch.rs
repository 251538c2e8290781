//! The decisions of a bulk: which request is next, what a response means, when to wake up. Pure: events and times
//! are arguments, and nothing is sent here.
//!
//! ```text
//! accept ─► unassigned ─► partition queue ──────► next_request ─► complete ─► results
//!              ▲                  ▲                                  │
//!              └── gone ──────────┴────────── sent again ◄───────────┘
//! ```
//!
//! Each operation is in exactly one of these states, so each gets exactly one result.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::partition::effective_key;
use protocol::partition_range::RangeId;

use super::congestion_window::Feedback;
use super::operation::BulkOperation;
use super::options::BulkOptions;
use super::outcome::{OperationOutcome, RetryReason, outcome_of_error, outcome_of_result};
use super::partition_queue::{BatchLimits, PartitionQueue, Pending};
use super::response::{given_up, is_failure, outcome, read};
use super::result::{BulkItemResponse, BulkResult, BulkSummary};
use crate::cache::{Container, PartitionRanges};
use crate::clock::after;
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::backoff;

/// The first wait after a failure without a hint; each further one in a row is twice as long.
const WAIT: Duration = Duration::from_millis(20);
/// The longest wait after a failure without a hint.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// A hint is exceeded by up to this share of it, so that operations that were throttled together are not
/// retried together.
const HINT_SPREAD: f64 = 0.1;
/// How many times longer an operation is retried that is throttled while the partition accepts others.
const THROTTLED_RETRY_FACTOR: u32 = 10;

/// The container and its partition ranges, as they were last read.
#[derive(Clone, Debug)]
pub(super) struct PartitionLayout {
    pub(super) container: Arc<Container>,
    pub(super) ranges: Arc<PartitionRanges>,
}

impl PartitionLayout {
    fn owner(&self, operation: &BulkOperation) -> RangeId {
        let place = effective_key(self.container.partition_key(), operation.key());
        self.ranges.map().owner(&place).id
    }
}

/// One batch request to a partition.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) range: RangeId,
    pub(super) operations: Vec<Pending>,
    /// The generation of the layout that it was built with.
    generation: u64,
    sent_at: Instant,
}

/// A bulk in progress.
#[derive(Debug)]
pub(super) struct Dispatch {
    limits: BatchLimits,
    options: BulkOptions,
    layout: Option<PartitionLayout>,
    generation: u64,
    lookup: Lookup,
    /// Operations that no queue could take: the layout is unknown or out of date.
    unassigned: VecDeque<Pending>,
    queues: BTreeMap<RangeId, PartitionQueue>,
    /// The partition that the last request went to.
    last_served: RangeId,
    in_flight: usize,
    /// Operations without a result yet, and their bytes.
    pending_count: usize,
    pending_bytes: usize,
    input_ended: bool,
    results: VecDeque<BulkResult>,
    summary: BulkSummary,
    began: Option<Instant>,
}

/// The state of the layout lookup.
#[derive(Debug, Default)]
struct Lookup {
    in_progress: bool,
    failures: u32,
    failing_since: Option<Instant>,
    not_before: Option<Instant>,
}

impl Dispatch {
    pub(super) fn new(options: BulkOptions) -> Dispatch {
        Dispatch {
            limits: BatchLimits::of(&options),
            options,
            layout: None,
            generation: 0,
            lookup: Lookup::default(),
            unassigned: VecDeque::new(),
            queues: BTreeMap::new(),
            last_served: RangeId(0),
            in_flight: 0,
            pending_count: 0,
            pending_bytes: 0,
            input_ended: false,
            results: VecDeque::new(),
            summary: BulkSummary::default(),
            began: None,
        }
    }

    /// Whether there is room for one more operation.
    pub(super) fn has_room(&self) -> bool {
        self.pending_count < self.options.waiting_max.get()
            && self.pending_bytes < self.options.waiting_bytes_max
    }

    /// Accepts the next operation of the input, or its error.
    pub(super) fn accept(&mut self, operation: Result<BulkOperation>, now: Instant) {
        self.began.get_or_insert(now);
        let index = self.summary.operations;
        self.summary.operations += 1;
        match operation {
            Ok(operation) => {
                self.pending_count += 1;
                self.pending_bytes += operation.bytes();
                self.assign(Pending::new(index, operation, now));
            }
            Err(error) => {
                self.summary.failed += 1;
                self.results.push_back(BulkResult { index, charge: 0.0, attempts: 0, outcome: Err(error) });
            }
        }
    }

    /// The `_rid` of the container, once it is known.
    pub(super) fn container_rid(&self) -> Option<&str> {
        self.layout.as_ref().map(|layout| layout.container.rid())
    }

    /// Marks the input as ended.
    pub(super) fn end_input(&mut self) {
        self.input_ended = true;
    }

    /// The next result, if there is one.
    pub(super) fn next_result(&mut self) -> Option<BulkResult> {
        self.results.pop_front()
    }

    /// Whether the input has ended and every operation has its result.
    pub(super) fn is_done(&self) -> bool {
        self.input_ended && self.pending_count == 0 && self.results.is_empty()
    }

    /// The summary of the work so far.
    pub(super) fn summary(&self, now: Instant) -> BulkSummary {
        let windows = self.queues.iter().filter(|(_, queue)| !queue.gone);
        BulkSummary {
            elapsed: self.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began)),
            windows: windows.map(|(range, queue)| (*range, queue.window())).collect(),
            ..self.summary.clone()
        }
    }

    /// Puts an operation into the queue of its partition.
    fn assign(&mut self, pending: Pending) {
        let Some(layout) = &self.layout else {
            self.unassigned.push_back(pending);
            return;
        };
        let owner = layout.owner(&pending.operation);
        let queue = self.queues.entry(owner).or_insert_with(|| PartitionQueue::new(&self.limits));
        if queue.gone {
            self.unassigned.push_back(pending);
        } else {
            queue.push(pending);
        }
    }

    /// Returns the known layout, if a newer one has to be looked up now; the inner value is none for the first lookup.
    pub(super) fn needs_layout(&mut self, now: Instant) -> Option<Option<PartitionLayout>> {
        let wanted = !self.unassigned.is_empty() && !self.lookup.in_progress;
        if !wanted || self.lookup.not_before.is_some_and(|at| now < at) {
            return None;
        }
        self.lookup.in_progress = true;
        Some(self.layout.clone())
    }

    /// Takes the result of the layout lookup. `random` is a value in `0.0..1.0`.
    pub(super) fn update_layout(&mut self, layout: Result<PartitionLayout>, now: Instant, random: f64) {
        self.lookup.in_progress = false;
        let layout = match layout {
            Ok(layout) => layout,
            Err(error) => return self.layout_failed(error, now, random),
        };
        self.lookup = Lookup::default();
        if self.layout.as_ref().is_some_and(|old| old.ranges.map() != layout.ranges.map()) {
            self.summary.regrouped += 1;
        }
        self.generation += 1;
        let live = layout.ranges.map();
        let mut to_assign: Vec<Pending> = self.unassigned.drain(..).collect();
        for (range, queue) in &mut self.queues {
            if live.get(*range).is_none() {
                queue.gone = true;
                to_assign.extend(queue.drain());
            } else if queue.gone {
                // It is still there: a split takes a while to complete.
                queue.gone = false;
                queue.pause_until(after(now, backoff(queue.failures, WAIT, WAIT_MAX, random)));
            }
        }
        self.queues.retain(|_, queue| !(queue.gone && queue.is_idle()));
        self.layout = Some(layout);
        // Operations that were accepted first are sent first.
        to_assign.sort_by_key(|pending| pending.index);
        to_assign.into_iter().for_each(|pending| self.assign(pending));
    }

    fn layout_failed(&mut self, error: Error, now: Instant, random: f64) {
        let since = *self.lookup.failing_since.get_or_insert(now);
        if error.kind().is_transient() && now.saturating_duration_since(since) < self.options.retry_for {
            self.lookup.not_before = Some(after(now, backoff(self.lookup.failures, WAIT, WAIT_MAX, random)));
            self.lookup.failures = self.lookup.failures.saturating_add(1);
            return;
        }
        self.lookup = Lookup::default();
        for pending in std::mem::take(&mut self.unassigned) {
            let undecided = pending.maybe_applied && !pending.operation.kind().is_read_only();
            let error = if undecided { error.clone().with_kind(ErrorKind::Undecided) } else { error.clone() };
            self.finish(pending, Err(error));
        }
    }

    /// Whether no further operation can join those that wait.
    fn flushes(&self) -> bool {
        self.input_ended || !self.has_room()
    }

    /// The next request that may be sent now. Partitions are served round-robin.
    pub(super) fn next_request(&mut self, now: Instant) -> Option<Request> {
        if self.in_flight >= self.options.requests_max.get() {
            return None;
        }
        let flush = self.flushes();
        let is_due =
            |queue: &PartitionQueue| queue.next_send_at(&self.limits, flush).is_some_and(|at| at <= now);
        let after =
            self.queues.range((std::ops::Bound::Excluded(self.last_served), std::ops::Bound::Unbounded));
        let before = self.queues.range(..=self.last_served);
        let range = *after.chain(before).find(|(_, queue)| is_due(queue))?.0;
        let operations = self.queues.get_mut(&range)?.take(&self.limits, now);
        self.last_served = range;
        self.in_flight += 1;
        self.summary.requests += 1;
        self.summary.sent += operations.len() as u64;
        Some(Request { range, operations, generation: self.generation, sent_at: now })
    }

    /// When the stream has to wake up, if no event comes before.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let flush = self.flushes();
        let queues = (self.in_flight < self.options.requests_max.get())
            .then(|| self.queues.values().filter_map(|queue| queue.next_send_at(&self.limits, flush)).min())
            .flatten();
        let lookup =
            self.lookup.not_before.filter(|_| !self.lookup.in_progress && !self.unassigned.is_empty());
        [queues, lookup].into_iter().flatten().min()
    }

    /// Takes the result of a request: the body of its response, or an error. `random` is a value in
    /// `0.0..1.0`.
    pub(super) fn complete(&mut self, request: Request, response: Result<Bytes>, now: Instant, random: f64) {
        self.in_flight -= 1;
        let Request { range, operations, generation, sent_at } = request;
        let mut request_outcome = RequestOutcome::new(operations.len(), self.queues.get(&range), now);
        let response = response.as_ref().map_err(Error::clone);
        match response.and_then(|body| Ok((body, read(body, operations.len())?))) {
            Ok((body, results)) => {
                for (mut pending, result) in operations.into_iter().zip(results) {
                    pending.charge += result.request_charge;
                    self.summary.charge += result.request_charge;
                    let hint = result.retry_after_ms.map(Duration::from_millis);
                    let state = pending.state(request_outcome.batch_size);
                    let operation_outcome = outcome_of_result(result.status, result.sub_status, hint, &state);
                    self.apply_outcome(
                        pending,
                        operation_outcome,
                        outcome(body, result),
                        &mut request_outcome,
                    );
                }
            }
            Err(error) => {
                request_outcome.failed = is_failure(&error);
                for pending in operations {
                    let operation_outcome =
                        outcome_of_error(&error, &pending.state(request_outcome.batch_size));
                    self.apply_outcome(pending, operation_outcome, Err(error.clone()), &mut request_outcome);
                }
            }
        }
        self.after_request(range, generation, sent_at, request_outcome, random);
    }

    /// Gives one operation its result, or queues it for a retry.
    fn apply_outcome(
        &mut self,
        mut pending: Pending,
        operation_outcome: OperationOutcome,
        outcome: Result<BulkItemResponse>,
        request_outcome: &mut RequestOutcome,
    ) {
        let cause = match operation_outcome {
            OperationOutcome::Succeeded | OperationOutcome::Failed => {
                request_outcome.made_progress = true;
                return self.finish(pending, outcome);
            }
            OperationOutcome::Undecided => {
                return self.finish(pending, outcome.map_err(|error| error.with_kind(ErrorKind::Undecided)));
            }
            OperationOutcome::Retry(cause) => cause,
        };
        match cause {
            RetryReason::Throttled(hint) => {
                request_outcome.throttled += 1;
                self.summary.throttled += 1;
                request_outcome.hint = request_outcome.hint.max(hint);
            }
            RetryReason::TooLarge => pending.batch_size_max = (request_outcome.batch_size / 2).max(1),
            RetryReason::MaybeApplied => {
                pending.maybe_applied |= !pending.operation.kind().is_read_only();
                request_outcome.has_transient_failure = true;
            }
            RetryReason::Unavailable | RetryReason::PartitionGone => {
                request_outcome.has_transient_failure = true
            }
        }
        if self.is_out_of_time(&pending, cause, request_outcome) {
            let error = outcome.err().unwrap_or_else(|| Error::new(ErrorKind::Unavailable, "no response"));
            let error = given_up(&error, &pending, request_outcome.now);
            return self.finish(pending, Err(error));
        }
        if cause == RetryReason::PartitionGone {
            request_outcome.gone = true;
            self.unassigned.push_back(pending);
        } else {
            request_outcome.retries.push(pending);
        }
    }

    fn is_out_of_time(
        &self,
        pending: &Pending,
        cause: RetryReason,
        request_outcome: &RequestOutcome,
    ) -> bool {
        let first = pending.first_sent.unwrap_or(request_outcome.now);
        let since = match cause {
            RetryReason::Throttled(_) => {
                request_outcome.progress_at.map_or(first, |progress| progress.max(first))
            }
            _ => first,
        };
        let passed = |since: Instant| request_outcome.now.saturating_duration_since(since);
        passed(since) >= self.options.retry_for
            || passed(first) >= self.options.retry_for.saturating_mul(THROTTLED_RETRY_FACTOR)
    }

    /// Updates the queue of the partition after a request, and requeues retries.
    fn after_request(
        &mut self,
        range: RangeId,
        generation: u64,
        sent_at: Instant,
        request_outcome: RequestOutcome,
        random: f64,
    ) {
        let now = request_outcome.now;
        let Some(queue) = self.queues.get_mut(&range) else {
            debug_assert!(false, "a queue stays while one of its requests is in flight");
            self.unassigned.extend(request_outcome.retries);
            return;
        };
        let feedback = Feedback {
            sent_at,
            took: now.saturating_duration_since(sent_at),
            operations: request_outcome.batch_size,
            throttled: request_outcome.throttled,
            failed: request_outcome.failed,
            was_full: false,
        };
        if request_outcome.made_progress {
            queue.progress_at = Some(now);
        }
        queue.failures =
            if request_outcome.has_transient_failure { queue.failures.saturating_add(1) } else { 0 };
        queue.requeue(request_outcome.retries);
        queue.complete(&feedback, &self.limits, now);
        if request_outcome.throttled > 0 {
            let wait = match request_outcome.hint {
                Some(hint) => hint.min(self.options.retry_for).mul_f64(1.0 + random * HINT_SPREAD),
                None => backoff(queue.failures, WAIT, WAIT_MAX, random),
            };
            queue.pause_until(after(now, wait));
        }
        if request_outcome.has_transient_failure && !request_outcome.gone {
            queue.pause_until(after(now, backoff(queue.failures - 1, WAIT, WAIT_MAX, random)));
        }
        let is_news = generation == self.generation;
        queue.gone |= request_outcome.gone && is_news;
        if queue.gone {
            self.unassigned.extend(queue.drain());
        }
        // A layout that arrived while the request was in flight decides the partitions of the retries.
        if !is_news {
            self.queues.retain(|_, queue| !(queue.gone && queue.is_idle()));
            std::mem::take(&mut self.unassigned).into_iter().for_each(|pending| self.assign(pending));
        }
    }

    fn finish(&mut self, pending: Pending, outcome: Result<BulkItemResponse>) {
        self.pending_count -= 1;
        self.pending_bytes -= pending.operation.bytes();
        match &outcome {
            Ok(_) => self.summary.succeeded += 1,
            Err(_) => self.summary.failed += 1,
        }
        let Pending { index, charge, attempts, .. } = pending;
        self.results.push_back(BulkResult { index, charge, attempts, outcome });
    }
}

/// The outcome of a request over all of its operations.
struct RequestOutcome {
    now: Instant,
    /// How many operations the request had.
    batch_size: usize,
    /// When the partition last accepted an operation.
    progress_at: Option<Instant>,
    /// Whether the partition could not be reached or failed.
    failed: bool,
    throttled: usize,
    /// The longest wait that the partition asked for.
    hint: Option<Duration>,
    /// Whether any operation got its final outcome.
    made_progress: bool,
    /// Whether any operation failed in a way that a wait may help.
    has_transient_failure: bool,
    /// Whether any operation belongs to another partition now.
    gone: bool,
    /// The operations that are retried.
    retries: Vec<Pending>,
}

impl RequestOutcome {
    fn new(together: usize, queue: Option<&PartitionQueue>, now: Instant) -> RequestOutcome {
        RequestOutcome {
            now,
            batch_size: together,
            progress_at: queue.and_then(|queue| queue.progress_at),
            failed: false,
            throttled: 0,
            hint: None,
            made_progress: false,
            has_transient_failure: false,
            gone: false,
            retries: Vec::new(),
        }
    }
}
