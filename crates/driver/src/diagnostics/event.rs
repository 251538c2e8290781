//! One attempt, as it is recorded.

use std::time::{Duration, Instant};

use protocol::partition_range::RangeId;

use crate::routing::Endpoint;
use crate::transport::outcome::SendRecord;
use crate::transport::request::ExecutionContext;

/// One attempt. Holds no text: names are shared or static.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Why it was made.
    pub context: ExecutionContext,
    /// Where it went.
    pub endpoint: Endpoint,
    /// The physical partition it was about, when that was known.
    pub range: Option<RangeId>,
    /// What became of the request.
    pub outcome: AttemptOutcome,
    /// What was done next, and why.
    pub next: &'static str,
}

/// What became of a request.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every attempt is a sent one; a box each would cost more"
)]
pub enum AttemptOutcome {
    /// It was answered, or failed.
    Sent(SendRecord),
    /// It was dropped before it was answered: another attempt was faster, or the deadline came.
    Abandoned {
        /// When it began.
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
