//! Reads the response of a batch request, and builds the errors of operations. Pure.

use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::batch::{BatchResult, parse_results};
use protocol::status::Status;

use super::partition_queue::Pending;
use super::result::BulkItemResponse;
use crate::error::{Error, ErrorKind, Result};

/// The results in a response body; an error unless there is one for each operation.
pub(super) fn read(body: &Bytes, operations: usize) -> Result<Vec<BatchResult<&[u8]>>> {
    let invalid = |problem: String| {
        Error::new(ErrorKind::BadResponse, format!("the response is not that of a bulk request: {problem}"))
    };
    let results = parse_results(body).map_err(|error| invalid(error.to_string()))?;
    if results.len() != operations {
        return Err(invalid(format!("{} results for {operations} operations", results.len())));
    }
    Ok(results)
}

/// The response or error of one result.
pub(super) fn outcome(body: &Bytes, result: BatchResult<&[u8]>) -> Result<BulkItemResponse> {
    if !result.status.is_error() {
        return Ok(BulkItemResponse {
            status: result.status,
            etag: result.etag,
            body: result.resource_body.map_or_else(Bytes::new, |item| body.slice_ref(item)),
        });
    }
    let error = Error::of_result(result.status, result.sub_status, result.message.as_deref());
    Err(match result.retry_after_ms {
        Some(wait) => error.with_retry_after(Duration::from_millis(wait)),
        None => error,
    })
}

/// The final error of an operation: its last error, and how long it was retried.
pub(super) fn given_up(last: &Error, pending: &Pending, now: Instant) -> Error {
    let tried = pending.first_sent.map_or(Duration::ZERO, |first| now.saturating_duration_since(first));
    let message = format!("{} (sent {} times in {tried:.1?})", last.message(), pending.attempts);
    let kind = if pending.maybe_applied { ErrorKind::Undecided } else { last.kind() };
    let mut error = Error::new(kind, message);
    if let Some(status) = last.status() {
        error = error.with_status(status, last.sub_status());
    }
    if let Some(diagnostics) = last.diagnostics() {
        error = error.with_diagnostics(diagnostics.clone());
    }
    error
}

/// Whether an error is a failure of the partition; one that was split or moved is not.
pub(super) fn is_failure(error: &Error) -> bool {
    let unreached =
        matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Undecided | ErrorKind::DeadlineExceeded);
    unreached && error.status() != Some(Status::GONE)
}
