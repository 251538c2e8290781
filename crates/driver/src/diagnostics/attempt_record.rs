//! The record of one attempt.

use std::time::{Duration, Instant};

use perihelion_http::trace::{RequestTrace, Sent};
use protocol::partition_range::RangeId;
use protocol::status::{Status, SubStatus};

use crate::routing::{Diversion, Endpoint};

/// The record of one attempt. Holds no text of its own: names are shared or static.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// Why the attempt was made.
    pub context: ExecutionContext,
    /// The endpoint it was sent to.
    pub endpoint: Endpoint,
    /// The physical partition it was about, when that was known.
    pub range: Option<RangeId>,
    /// The region that comes first and was avoided, and why: an open circuit breaker, or an unavailable region.
    pub diversion: Option<Box<Diversion>>,
    /// How the request ended.
    pub outcome: AttemptOutcome,
    /// What was done next, and why.
    pub next: &'static str,
}

/// How a request ended.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every attempt is a sent one; a box each would cost more"
)]
pub enum AttemptOutcome {
    /// The request got a response, or failed.
    Sent(SendRecord),
    /// The request was dropped before its response: another attempt was faster, or the deadline passed.
    Abandoned {
        /// When the request was started.
        started: Instant,
        /// How long it was waited for.
        took: Duration,
    },
}

impl AttemptOutcome {
    /// The request, unless it was dropped.
    pub fn sent(&self) -> Option<&SendRecord> {
        match self {
            AttemptOutcome::Sent(record) => Some(record),
            AttemptOutcome::Abandoned { .. } => None,
        }
    }

    /// When it began and how long it took.
    pub fn span(&self) -> (Instant, Duration) {
        match self {
            AttemptOutcome::Sent(record) => (record.started, record.took),
            AttemptOutcome::Abandoned { started, took } => (*started, *took),
        }
    }
}

/// Why an attempt is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecutionContext {
    /// The first attempt of an operation.
    Initial,
    /// A retry in the region that was tried before.
    Retry,
    /// A retry in another region.
    Failover,
    /// A hedged attempt beside the first, which is slow.
    Hedging,
    /// A probe whether a partition or region is available again.
    Probe,
}

impl ExecutionContext {
    /// The name in diagnostics.
    pub fn name(self) -> &'static str {
        match self {
            ExecutionContext::Initial => "initial",
            ExecutionContext::Retry => "retry",
            ExecutionContext::Failover => "failover",
            ExecutionContext::Hedging => "hedging",
            ExecutionContext::Probe => "probe",
        }
    }
}

/// One request that left the driver, for diagnostics.
#[derive(Clone, Debug)]
pub struct SendRecord {
    /// When the request was started.
    pub started: Instant,
    /// How long it took, to the last byte or the failure.
    pub took: Duration,
    /// The status and sub-status; none without a response.
    pub status: Option<(Status, SubStatus)>,
    /// Request units of the response.
    pub charge: f64,
    /// Whether the request was sent.
    pub sent: Sent,
    /// The shard that sent it; none over HTTP/1.1.
    pub shard: Option<u64>,
    /// How long the transport waited before it.
    pub waited: Duration,
    /// The connection and its steps, as far as the client reported them.
    pub exchange: RequestTrace,
}
