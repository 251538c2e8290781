//! Everything a bulk decides: what leaves next, what an answer means, when to look again. Pure: it is told
//! what happened and at what time, and sends nothing itself.
//!
//! ```text
//! accept ─► unplaced ─► lane of the partition ─► next_request ─► answered ─► results
//!              ▲                  ▲                                  │
//!              └── gone ──────────┴────────── sent again ◄───────────┘
//! ```
//!
//! Each operation is in exactly one of these places, so each gets exactly one result.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::partition::effective_key;
use protocol::partition_range::RangeId;

use super::answer::{given_up, is_failure, outcome, read};
use super::fate::{Cause, Fate, of_error, of_result};
use super::lane::{Lane, Limits, Pending};
use super::operation::BulkOperation;
use super::options::BulkOptions;
use super::result::{BulkAnswer, BulkResult, BulkSummary};
use super::window::Feedback;
use crate::cache::{Container, PartitionRanges};
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::backoff;

/// The first wait after a failure without a hint; each further one in a row is twice as long.
const WAIT: Duration = Duration::from_millis(20);
/// No such wait is longer.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// A hint is exceeded by up to this share of it, so that those who were refused together do not come back
/// together.
const HINT_SPREAD: f64 = 0.1;
/// An operation that is throttled while others are taken is given up after so many times the usual time.
const PATIENCE: u32 = 10;

/// The partitions of the container, as they were when somebody asked.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    pub(super) container: Arc<Container>,
    pub(super) ranges: Arc<PartitionRanges>,
}

impl Ring {
    fn owner(&self, operation: &BulkOperation) -> RangeId {
        let place = effective_key(self.container.partition_key(), operation.key());
        self.ranges.map().owner(&place).id
    }
}

/// A request that is to be sent, or was.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) range: RangeId,
    pub(super) operations: Vec<Pending>,
    /// Which ring it was cut by.
    generation: u64,
    sent_at: Instant,
}

/// A bulk under way.
#[derive(Debug)]
pub(super) struct Dispatch {
    limits: Limits,
    options: BulkOptions,
    ring: Option<Ring>,
    generation: u64,
    lookup: Lookup,
    /// What belongs to no known partition.
    unplaced: VecDeque<Pending>,
    lanes: BTreeMap<RangeId, Lane>,
    /// Whose turn it was.
    turn: RangeId,
    in_flight: usize,
    /// Operations without a result, and their bytes.
    inside: usize,
    inside_bytes: usize,
    input_ended: bool,
    results: VecDeque<BulkResult>,
    summary: BulkSummary,
    began: Option<Instant>,
}

/// Whether the ring is being asked for.
#[derive(Debug, Default)]
struct Lookup {
    under_way: bool,
    failures: u32,
    failing_since: Option<Instant>,
    not_before: Option<Instant>,
}

impl Dispatch {
    pub(super) fn new(options: BulkOptions) -> Dispatch {
        Dispatch {
            limits: Limits::of(&options),
            options,
            ring: None,
            generation: 0,
            lookup: Lookup::default(),
            unplaced: VecDeque::new(),
            lanes: BTreeMap::new(),
            turn: RangeId(0),
            in_flight: 0,
            inside: 0,
            inside_bytes: 0,
            input_ended: false,
            results: VecDeque::new(),
            summary: BulkSummary::default(),
            began: None,
        }
    }

    /// Whether there is room for one more operation.
    pub(super) fn has_room(&self) -> bool {
        self.inside < self.options.waiting_max.get() && self.inside_bytes < self.options.waiting_bytes_max
    }

    /// Takes the next operation of the input, or why it is none.
    pub(super) fn accept(&mut self, operation: Result<BulkOperation>, now: Instant) {
        self.began.get_or_insert(now);
        let index = self.summary.operations;
        self.summary.operations += 1;
        match operation {
            Ok(operation) => {
                self.inside += 1;
                self.inside_bytes += operation.bytes();
                self.place(Pending::new(index, operation, now));
            }
            Err(error) => {
                self.summary.failed += 1;
                self.results.push_back(BulkResult { index, charge: 0.0, attempts: 0, outcome: Err(error) });
            }
        }
    }

    /// What tells the container from another one of its name.
    pub(super) fn container_rid(&self) -> Option<&str> {
        self.ring.as_ref().map(|ring| ring.container.rid())
    }

    /// No more will come.
    pub(super) fn end_input(&mut self) {
        self.input_ended = true;
    }

    /// The next result, if there is one.
    pub(super) fn next_result(&mut self) -> Option<BulkResult> {
        self.results.pop_front()
    }

    /// Whether everything that will come has come and was answered.
    pub(super) fn is_done(&self) -> bool {
        self.input_ended && self.inside == 0 && self.results.is_empty()
    }

    /// What was done so far.
    pub(super) fn summary(&self, now: Instant) -> BulkSummary {
        let windows = self.lanes.iter().filter(|(_, lane)| !lane.gone);
        BulkSummary {
            elapsed: self.began.map_or(Duration::ZERO, |began| now.saturating_duration_since(began)),
            windows: windows.map(|(range, lane)| (*range, lane.window())).collect(),
            ..self.summary.clone()
        }
    }

    /// Puts an operation where it belongs.
    fn place(&mut self, pending: Pending) {
        let Some(ring) = &self.ring else {
            self.unplaced.push_back(pending);
            return;
        };
        let owner = ring.owner(&pending.operation);
        let lane = self.lanes.entry(owner).or_insert_with(|| Lane::new(&self.limits));
        if lane.gone {
            self.unplaced.push_back(pending);
        } else {
            lane.push(pending);
        }
    }

    /// The ring to ask for, if it has to be asked for now: a newer one than this, if there is one.
    pub(super) fn wants_ring(&mut self, now: Instant) -> Option<Option<Ring>> {
        let wanted = !self.unplaced.is_empty() && !self.lookup.under_way;
        if !wanted || self.lookup.not_before.is_some_and(|at| now < at) {
            return None;
        }
        self.lookup.under_way = true;
        Some(self.ring.clone())
    }

    /// Takes the ring that was asked for. `draw` is a value in `0.0..1.0`.
    pub(super) fn take_ring(&mut self, ring: Result<Ring>, now: Instant, draw: f64) {
        self.lookup.under_way = false;
        let ring = match ring {
            Ok(ring) => ring,
            Err(error) => return self.ring_failed(error, now, draw),
        };
        self.lookup = Lookup::default();
        if self.ring.as_ref().is_some_and(|old| old.ranges.map() != ring.ranges.map()) {
            self.summary.regrouped += 1;
        }
        self.generation += 1;
        let live = ring.ranges.map();
        let mut homeless: Vec<Pending> = self.unplaced.drain(..).collect();
        for (range, lane) in &mut self.lanes {
            if live.get(*range).is_none() {
                lane.gone = true;
                homeless.extend(lane.drain());
            } else if lane.gone {
                // It is still there: a split takes a while to complete.
                lane.gone = false;
                lane.pause_until(now + backoff(lane.failures, WAIT, WAIT_MAX, draw));
            }
        }
        self.lanes.retain(|_, lane| !(lane.gone && lane.is_idle()));
        self.ring = Some(ring);
        // Those that were handed in first go first.
        homeless.sort_by_key(|pending| pending.index);
        homeless.into_iter().for_each(|pending| self.place(pending));
    }

    fn ring_failed(&mut self, error: Error, now: Instant, draw: f64) {
        let since = *self.lookup.failing_since.get_or_insert(now);
        if error.kind().is_transient() && now.saturating_duration_since(since) < self.options.retry_for {
            self.lookup.not_before = Some(now + backoff(self.lookup.failures, WAIT, WAIT_MAX, draw));
            self.lookup.failures = self.lookup.failures.saturating_add(1);
            return;
        }
        self.lookup = Lookup::default();
        for pending in std::mem::take(&mut self.unplaced) {
            let undecided = pending.maybe_applied && !pending.operation.kind().is_read_only();
            let error = if undecided { error.clone().with_kind(ErrorKind::Undecided) } else { error.clone() };
            self.finish(pending, Err(error));
        }
    }

    /// Whether nothing that is still to come could join what waits.
    fn flushes(&self) -> bool {
        self.input_ended || !self.has_room()
    }

    /// The next request that may leave now. Partitions take turns.
    pub(super) fn next_request(&mut self, now: Instant) -> Option<Request> {
        if self.in_flight >= self.options.requests_max.get() {
            return None;
        }
        let flush = self.flushes();
        let is_due = |lane: &Lane| lane.sends_at(&self.limits, flush).is_some_and(|at| at <= now);
        let after = self.lanes.range((std::ops::Bound::Excluded(self.turn), std::ops::Bound::Unbounded));
        let before = self.lanes.range(..=self.turn);
        let range = *after.chain(before).find(|(_, lane)| is_due(lane))?.0;
        let operations = self.lanes.get_mut(&range)?.take(&self.limits, now);
        self.turn = range;
        self.in_flight += 1;
        self.summary.requests += 1;
        self.summary.sent += operations.len() as u64;
        Some(Request { range, operations, generation: self.generation, sent_at: now })
    }

    /// When there may be something to do although nothing happens.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let flush = self.flushes();
        let lanes = (self.in_flight < self.options.requests_max.get())
            .then(|| self.lanes.values().filter_map(|lane| lane.sends_at(&self.limits, flush)).min())
            .flatten();
        let lookup = self.lookup.not_before.filter(|_| !self.lookup.under_way && !self.unplaced.is_empty());
        [lanes, lookup].into_iter().flatten().min()
    }

    /// Takes what became of a request: the body of its answer, or why there is none. `draw` is a value in
    /// `0.0..1.0`.
    pub(super) fn answered(&mut self, request: Request, answer: Result<Bytes>, now: Instant, draw: f64) {
        self.in_flight -= 1;
        let Request { range, operations, generation, sent_at } = request;
        let mut verdict = Verdict::new(operations.len(), self.lanes.get(&range), now);
        let answer = answer.as_ref().map_err(Error::clone);
        match answer.and_then(|body| Ok((body, read(body, operations.len())?))) {
            Ok((body, results)) => {
                for (mut pending, result) in operations.into_iter().zip(results) {
                    pending.charge += result.request_charge;
                    self.summary.charge += result.request_charge;
                    let hint = result.retry_after_ms.map(Duration::from_millis);
                    let facts = pending.facts(verdict.together);
                    let fate = of_result(result.status, result.sub_status, hint, &facts);
                    self.settle(pending, fate, outcome(body, result), &mut verdict);
                }
            }
            Err(error) => {
                verdict.failed = is_failure(&error);
                for pending in operations {
                    let fate = of_error(&error, &pending.facts(verdict.together));
                    self.settle(pending, fate, Err(error.clone()), &mut verdict);
                }
            }
        }
        self.after_request(range, generation, sent_at, verdict, draw);
    }

    /// Gives one operation its result, or notes that it is sent again.
    fn settle(
        &mut self,
        mut pending: Pending,
        fate: Fate,
        outcome: Result<BulkAnswer>,
        verdict: &mut Verdict,
    ) {
        let cause = match fate {
            Fate::Done | Fate::Refused => {
                verdict.took_some = true;
                return self.finish(pending, outcome);
            }
            Fate::Undecided => {
                return self.finish(pending, outcome.map_err(|error| error.with_kind(ErrorKind::Undecided)));
            }
            Fate::Again(cause) => cause,
        };
        match cause {
            Cause::Throttled(hint) => {
                verdict.throttled += 1;
                self.summary.throttled += 1;
                verdict.hint = verdict.hint.max(hint);
            }
            Cause::TooMuch => pending.together_max = (verdict.together / 2).max(1),
            Cause::Lost => {
                pending.maybe_applied |= !pending.operation.kind().is_read_only();
                verdict.faltered = true;
            }
            Cause::Busy | Cause::Gone => verdict.faltered = true,
        }
        if self.is_out_of_time(&pending, cause, verdict) {
            let error = outcome.err().unwrap_or_else(|| Error::new(ErrorKind::Unavailable, "no answer"));
            let error = given_up(&error, &pending, verdict.now);
            return self.finish(pending, Err(error));
        }
        if cause == Cause::Gone {
            verdict.gone = true;
            self.unplaced.push_back(pending);
        } else {
            verdict.again.push(pending);
        }
    }

    fn is_out_of_time(&self, pending: &Pending, cause: Cause, verdict: &Verdict) -> bool {
        let first = pending.first_sent.unwrap_or(verdict.now);
        let since = match cause {
            Cause::Throttled(_) => verdict.progress_at.map_or(first, |progress| progress.max(first)),
            _ => first,
        };
        let passed = |since: Instant| verdict.now.saturating_duration_since(since);
        passed(since) >= self.options.retry_for
            || passed(first) >= self.options.retry_for.saturating_mul(PATIENCE)
    }

    /// What a request means for its partition, and where what is sent again waits.
    fn after_request(
        &mut self,
        range: RangeId,
        generation: u64,
        sent_at: Instant,
        verdict: Verdict,
        draw: f64,
    ) {
        let now = verdict.now;
        let Some(lane) = self.lanes.get_mut(&range) else {
            debug_assert!(false, "a lane stays while a request of it is on its way");
            self.unplaced.extend(verdict.again);
            return;
        };
        let feedback = Feedback {
            sent_at,
            took: now.saturating_duration_since(sent_at),
            operations: verdict.together,
            throttled: verdict.throttled,
            failed: verdict.failed,
            was_full: false,
        };
        if verdict.took_some {
            lane.progress_at = Some(now);
        }
        lane.failures = if verdict.faltered { lane.failures.saturating_add(1) } else { 0 };
        lane.give_back(verdict.again);
        lane.answered(&feedback, &self.limits, now);
        if verdict.throttled > 0 {
            let wait = match verdict.hint {
                Some(hint) => hint.min(self.options.retry_for).mul_f64(1.0 + draw * HINT_SPREAD),
                None => backoff(lane.failures, WAIT, WAIT_MAX, draw),
            };
            lane.pause_until(now + wait);
        }
        if verdict.faltered && !verdict.gone {
            lane.pause_until(now + backoff(lane.failures - 1, WAIT, WAIT_MAX, draw));
        }
        let is_news = generation == self.generation;
        lane.gone |= verdict.gone && is_news;
        if lane.gone {
            self.unplaced.extend(lane.drain());
        }
        // A ring that came while the request was on its way says where they belong.
        if !is_news {
            self.lanes.retain(|_, lane| !(lane.gone && lane.is_idle()));
            std::mem::take(&mut self.unplaced).into_iter().for_each(|pending| self.place(pending));
        }
    }

    fn finish(&mut self, pending: Pending, outcome: Result<BulkAnswer>) {
        self.inside -= 1;
        self.inside_bytes -= pending.operation.bytes();
        match &outcome {
            Ok(_) => self.summary.succeeded += 1,
            Err(_) => self.summary.failed += 1,
        }
        let Pending { index, charge, attempts, .. } = pending;
        self.results.push_back(BulkResult { index, charge, attempts, outcome });
    }
}

/// What the answer to a request adds up to.
struct Verdict {
    now: Instant,
    /// Operations of the request.
    together: usize,
    /// When the partition had taken an operation last.
    progress_at: Option<Instant>,
    /// Whether the partition could not be reached or failed.
    failed: bool,
    throttled: usize,
    /// The longest wait the partition asks for.
    hint: Option<Duration>,
    /// Whether the partition decided about any.
    took_some: bool,
    /// Whether any failed in a way that waiting helps against.
    faltered: bool,
    /// Whether any belongs elsewhere.
    gone: bool,
    /// What is sent again.
    again: Vec<Pending>,
}

impl Verdict {
    fn new(together: usize, lane: Option<&Lane>, now: Instant) -> Verdict {
        Verdict {
            now,
            together,
            progress_at: lane.and_then(|lane| lane.progress_at),
            failed: false,
            throttled: 0,
            hint: None,
            took_some: false,
            faltered: false,
            gone: false,
            again: Vec::new(),
        }
    }
}
