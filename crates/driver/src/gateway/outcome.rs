//! The outcome of one attempt: a success, an error of the service, or no response.

pub(super) use crate::diagnostics::SendRecord;
use crate::transport::TransportResponse;

/// Whether the request may have reached the service. Decides whether it may be sent again.
pub(super) use perihelion_http::trace::Sent;

/// The outcome of an attempt.
#[derive(Debug)]
pub enum GatewayOutcome {
    /// The service responded with 2xx, or 304.
    Success(TransportResponse),
    /// The service responded with an error; 429 only after the retries of throttling are exhausted.
    ServiceError(TransportResponse),
    /// There was no response: the connection failed, or the attempt's own time limit passed.
    NoResponse {
        /// The error of the transport or the credential.
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

/// The result of one attempt: its outcome and every request it took.
#[derive(Debug)]
pub struct GatewayResult {
    /// How the attempt ended.
    pub outcome: GatewayOutcome,
    /// The last request; none when the deadline had passed before anything was sent.
    pub last: Option<SendRecord>,
    /// Those before it, which were throttled or failed on a connection: oldest first.
    pub earlier: Vec<SendRecord>,
}

impl GatewayResult {
    /// Whether a request was sent, and nothing came back to any request of the attempt, not even 429.
    pub fn is_silent(&self) -> bool {
        self.last.is_some() && self.earlier.iter().chain(&self.last).all(|record| record.status.is_none())
    }
}
