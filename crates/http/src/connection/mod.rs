//! Sending a request over one open connection, and receiving its response.
//!
//! [`http1`] and [`http2`] do so for one protocol each. A [`ResponseBody`] holds on to its connection, or to its
//! stream of one, until the last byte has been read.

pub(crate) mod http1;
pub(crate) mod http2;
mod response_body;
mod waker;

use http::Request;

use crate::call::StepError;
use crate::request_body::RequestBody;

pub use response_body::ResponseBody;

/// The error of a request that failed before its response began.
#[derive(Debug)]
pub(crate) struct TrySendError {
    /// The request itself, if no byte of it was sent and it can be sent again.
    pub(crate) request: Option<Request<RequestBody>>,
    pub(crate) error: StepError,
}

impl From<StepError> for TrySendError {
    fn from(error: StepError) -> Self {
        TrySendError { request: None, error }
    }
}
