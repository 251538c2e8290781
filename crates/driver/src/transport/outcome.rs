//! What one attempt came to: an answer, an error of the service, or no answer.

use std::time::{Duration, Instant};

use bytes::Bytes;
use perihelion_http::trace::RequestTrace;
use protocol::status::{Status, SubStatus};

use crate::operation::ResponseHeaders;

/// Whether the request may have reached the service. Decides whether it may be sent again.
pub use perihelion_http::trace::Sent;

/// An answer of the service, good or bad.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: Status,
    /// The sub-status, 0 for none.
    pub sub_status: SubStatus,
    /// Every header.
    pub headers: ResponseHeaders,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// An answer of these parts; the sub-status is read from the headers.
    pub fn new(status: Status, headers: ResponseHeaders, body: Bytes) -> Answer {
        Answer { status, sub_status: headers.sub_status(), headers, body }
    }
}

/// What an attempt came to.
#[derive(Debug)]
pub enum TransportOutcome {
    /// 2xx, or 304.
    Success(Answer),
    /// An error of the service; throttling only after its own retries are spent.
    ServiceError(Answer),
    /// No answer: the connection failed, or the attempt's own time limit passed.
    NoAnswer {
        /// What went wrong.
        error: azure_core::Error,
        /// Whether the service may have acted on it.
        sent: Sent,
    },
    /// The operation's deadline passed, before or while sending.
    DeadlineExceeded {
        /// Whether the service may have acted on it.
        sent: Sent,
    },
}

/// One request that left the driver, for diagnostics.
#[derive(Clone, Debug)]
pub struct SendRecord {
    /// When it began.
    pub started: Instant,
    /// How long it took, to the last byte or the failure.
    pub took: Duration,
    /// The status and sub-status; none without an answer.
    pub status: Option<(Status, SubStatus)>,
    /// Request units of the answer.
    pub charge: f64,
    /// Whether it left.
    pub sent: Sent,
    /// Which shard carried it; none over HTTP/1.1.
    pub shard: Option<u64>,
    /// How long the transport waited before it.
    pub waited: Duration,
    /// The connection and its steps, as far as the client reported them.
    pub exchange: RequestTrace,
}

/// The result of one attempt: its outcome and every request it took.
#[derive(Debug)]
pub struct TransportResult {
    /// What it came to.
    pub outcome: TransportOutcome,
    /// The last request; none when the deadline had passed before anything was sent.
    pub last: Option<SendRecord>,
    /// Those before it, which were throttled or failed on a connection: oldest first.
    pub earlier: Vec<SendRecord>,
}
