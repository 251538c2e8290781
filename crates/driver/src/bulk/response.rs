//! Answers read, and errors told. Pure.

use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::batch::{BatchResult, parse_results};
use protocol::status::Status;

use super::partition_queue::Pending;
use super::result::BulkItemResponse;
use crate::error::{Error, ErrorKind, Result, service_text};

/// The results of a response: as many as operations, or it is none.
pub(super) fn read(body: &Bytes, operations: usize) -> Result<Vec<BatchResult<&[u8]>>> {
    let bad = |why: String| {
        Error::new(ErrorKind::BadResponse, format!("the answer is not that of a bulk request: {why}"))
    };
    let results = parse_results(body).map_err(|error| bad(error.to_string()))?;
    if results.len() != operations {
        return Err(bad(format!("{} results for {operations} operations", results.len())));
    }
    Ok(results)
}

/// What one result says.
pub(super) fn outcome(body: &Bytes, result: BatchResult<&[u8]>) -> Result<BulkItemResponse> {
    if !result.status.is_error() {
        return Ok(BulkItemResponse {
            status: result.status,
            etag: result.etag,
            body: result.resource_body.map_or_else(Bytes::new, |item| body.slice_ref(item)),
        });
    }
    let message = result.message.as_deref().map(service_text).filter(|words| !words.is_empty());
    let message = message.unwrap_or_else(|| format!("the service answered {}", result.status));
    let kind = ErrorKind::of_status(result.status, result.sub_status);
    let error = Error::new(kind, message).with_status(result.status, result.sub_status);
    Err(match result.retry_after_ms {
        Some(wait) => error.with_retry_after(Duration::from_millis(wait)),
        None => error,
    })
}

/// The last error of an operation, and how long it was tried.
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

/// Whether an error speaks against the partition, and not for it: one that moved is well.
pub(super) fn is_failure(error: &Error) -> bool {
    let unreached =
        matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Undecided | ErrorKind::DeadlineExceeded);
    unreached && error.status() != Some(Status::GONE)
}
