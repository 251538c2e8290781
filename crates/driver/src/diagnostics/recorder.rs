//! Records the attempts of an operation in progress.

use std::time::Instant;

use protocol::partition_range::RangeId;
use protocol::status::Status;

use super::attempt_record::{AttemptOutcome, AttemptRecord, ExecutionContext, SendRecord};
use super::{Diagnostics, Totals};
use crate::routing::{Diversion, Endpoint};

/// Attempts that are kept from the beginning.
pub const ATTEMPTS_FIRST_MAX: usize = 8;
/// Attempts that are kept from the end.
pub const ATTEMPTS_LAST_MAX: usize = 8;

/// Where and why a request was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentTo<'a> {
    /// Why the attempt was made.
    pub context: ExecutionContext,
    /// The endpoint of the request.
    pub endpoint: &'a Endpoint,
    /// The physical partition, when it is known.
    pub range: Option<RangeId>,
    /// The region that was avoided, and why.
    pub diversion: Option<&'a Diversion>,
}

impl SentTo<'_> {
    fn record(self, outcome: AttemptOutcome, next: &'static str) -> AttemptRecord {
        let SentTo { context, endpoint, range, diversion } = self;
        let diversion = diversion.cloned().map(Box::new);
        AttemptRecord { context, endpoint: endpoint.clone(), range, diversion, outcome, next }
    }
}

/// The attempts of an operation so far. Appending costs a move of one record; memory is bounded.
#[derive(Debug)]
pub struct Recorder {
    operation: &'static str,
    started: Instant,
    attempts: Vec<AttemptRecord>,
    totals: Totals,
}

impl Recorder {
    /// A recorder without attempts. `operation` is the name of the operation.
    pub fn new(operation: &'static str, now: Instant) -> Recorder {
        // Nearly every operation takes one attempt; a race takes two.
        Recorder { operation, started: now, attempts: Vec::with_capacity(1), totals: Totals::default() }
    }

    /// When the operation began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The totals over all attempts so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Adds one request that got a response or failed.
    pub fn sent(&mut self, sent_to: SentTo<'_>, record: SendRecord, next: &'static str) {
        self.totals.charge += record.charge;
        self.totals.throttled +=
            u32::from(record.status.is_some_and(|(status, _)| status == Status::TOO_MANY_REQUESTS));
        let outcome = AttemptOutcome::Sent(record);
        self.push(sent_to.record(outcome, next));
    }

    /// Adds one request that was dropped before its response.
    pub fn abandoned(&mut self, sent_to: SentTo<'_>, started: Instant, now: Instant) {
        self.totals.abandoned += 1;
        let outcome = AttemptOutcome::Abandoned { started, took: now.saturating_duration_since(started) };
        self.push(sent_to.record(outcome, "abandoned"));
    }

    fn push(&mut self, attempt: AttemptRecord) {
        let before = self.totals.attempts as usize;
        self.totals.attempts = self.totals.attempts.saturating_add(1);
        self.totals.hedges += u32::from(attempt.context == ExecutionContext::Hedging);
        self.totals.failovers += u32::from(attempt.context == ExecutionContext::Failover);
        if before < ATTEMPTS_FIRST_MAX + ATTEMPTS_LAST_MAX {
            self.attempts.push(attempt);
        } else {
            let at = ATTEMPTS_FIRST_MAX + (before - ATTEMPTS_FIRST_MAX) % ATTEMPTS_LAST_MAX;
            self.attempts[at] = attempt;
        }
        debug_assert!(
            self.attempts.len() <= ATTEMPTS_FIRST_MAX + ATTEMPTS_LAST_MAX,
            "attempts outgrew their bound"
        );
    }

    /// Ends the record of the operation.
    pub fn finish(self, now: Instant) -> Diagnostics {
        let Recorder { operation, started, mut attempts, totals } = self;
        let count = totals.attempts as usize;
        if count > ATTEMPTS_FIRST_MAX + ATTEMPTS_LAST_MAX {
            let oldest = (count - ATTEMPTS_FIRST_MAX) % ATTEMPTS_LAST_MAX;
            attempts[ATTEMPTS_FIRST_MAX..].rotate_left(oldest);
        }
        Diagnostics {
            operation,
            elapsed: now.saturating_duration_since(started),
            first: attempts.len().min(ATTEMPTS_FIRST_MAX),
            attempts,
            totals,
        }
    }
}
