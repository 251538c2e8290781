//! What a response means for one operation. Pure.
//!
//! A request of many operations gets one error, or a result per operation; either way each operation has
//! succeeded, failed, is retried, or is undecided.

use std::time::Duration;

use protocol::status::{Status, SubStatus};

use crate::error::{Error, ErrorKind};
use crate::operation::OperationKind;

/// The outcome of an operation after one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OperationOutcome {
    /// The operation was carried out.
    Succeeded,
    /// The operation failed for good.
    Failed,
    /// The operation may have been carried out, and must not be repeated.
    Undecided,
    /// The operation is sent again.
    Retry(RetryReason),
}

/// Why an operation is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryReason {
    /// The partition throttles; the wait is the one it asked for, if any.
    Throttled(Option<Duration>),
    /// The item belongs to another partition now.
    PartitionGone,
    /// Nothing was done, and a retry may succeed.
    Unavailable,
    /// The request, or its response, was too large.
    TooLarge,
    /// The operation may have been carried out, and is idempotent.
    MaybeApplied,
}

/// The properties of an operation that its outcome depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OperationState {
    /// The kind of the operation.
    pub(super) kind: OperationKind,
    /// Whether it has a precondition.
    pub(super) conditional: bool,
    /// Whether it may be repeated although it may have been carried out.
    pub(super) repeatable: bool,
    /// Whether an earlier request may have carried it out.
    pub(super) maybe_applied: bool,
    /// Whether it was the only operation of its request.
    pub(super) sent_alone: bool,
}

/// The outcome of an operation that has a response of its own.
pub(super) fn outcome_of_result(
    status: Status,
    sub_status: SubStatus,
    hint: Option<Duration>,
    state: &OperationState,
) -> OperationOutcome {
    match (status, sub_status) {
        (status, _) if !status.is_error() => OperationOutcome::Succeeded,
        (Status::TOO_MANY_REQUESTS, SubStatus::SYSTEM_RESOURCE_UNAVAILABLE) => {
            OperationOutcome::Retry(RetryReason::Unavailable)
        }
        (Status::TOO_MANY_REQUESTS, _) => OperationOutcome::Retry(RetryReason::Throttled(hint)),
        (Status::GONE, _) => OperationOutcome::Retry(RetryReason::PartitionGone),
        (Status::SERVICE_UNAVAILABLE | Status::RETRY_WITH | Status::FAILED_DEPENDENCY, _)
        | (Status::NOT_FOUND, SubStatus::READ_SESSION_NOT_AVAILABLE) => {
            OperationOutcome::Retry(RetryReason::Unavailable)
        }
        (Status::REQUEST_ENTITY_TOO_LARGE, SubStatus::RESPONSE_TOO_LARGE) if !state.sent_alone => {
            OperationOutcome::Retry(RetryReason::TooLarge)
        }
        (Status::INTERNAL_SERVER_ERROR | Status::REQUEST_TIMEOUT, _) => retry_or_undecided(state),
        (status, _) if state.maybe_applied && state.kind.may_have_caused(status, state.conditional) => {
            OperationOutcome::Undecided
        }
        _ => OperationOutcome::Failed,
    }
}

/// The outcome of an operation whose request failed as a whole, after all that the driver tries by itself.
pub(super) fn outcome_of_error(error: &Error, state: &OperationState) -> OperationOutcome {
    let is_status = |status, sub_status| error.is_status(status, sub_status);
    match error.kind() {
        ErrorKind::Undecided => retry_or_undecided(state),
        ErrorKind::Throttled => OperationOutcome::Retry(RetryReason::Throttled(error.retry_after())),
        _ if error.status() == Some(Status::GONE)
            || is_status(Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH) =>
        {
            OperationOutcome::Retry(RetryReason::PartitionGone)
        }
        // One invalid operation fails the whole request: halving the batch isolates it.
        ErrorKind::TooLarge | ErrorKind::BadRequest if !state.sent_alone => {
            OperationOutcome::Retry(RetryReason::TooLarge)
        }
        ErrorKind::Unavailable | ErrorKind::DeadlineExceeded | ErrorKind::SessionUnavailable => {
            OperationOutcome::Retry(RetryReason::Unavailable)
        }
        ErrorKind::BadResponse if !state.kind.is_read_only() => OperationOutcome::Undecided,
        _ if state.maybe_applied && !state.kind.is_read_only() => OperationOutcome::Undecided,
        _ => OperationOutcome::Failed,
    }
}

/// The outcome of an operation that may have been done.
fn retry_or_undecided(state: &OperationState) -> OperationOutcome {
    if state.repeatable {
        OperationOutcome::Retry(RetryReason::MaybeApplied)
    } else {
        OperationOutcome::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSERT: OperationState = OperationState {
        kind: OperationKind::Upsert,
        conditional: false,
        repeatable: false,
        maybe_applied: false,
        sent_alone: false,
    };

    #[test]
    fn each_result_of_an_operation_has_its_outcome() {
        use OperationOutcome::{Failed, Retry, Succeeded, Undecided};
        use RetryReason::{MaybeApplied, PartitionGone, Throttled, TooLarge, Unavailable};
        let hint = Some(Duration::from_millis(7));
        let create = OperationState { kind: OperationKind::Create, ..UPSERT };
        let repeated = OperationState { repeatable: true, maybe_applied: true, ..create };
        let read = OperationState { kind: OperationKind::Read, repeatable: true, ..UPSERT };
        for (status, sub_status, state, expected) in [
            (200, 0, UPSERT, Succeeded),
            (201, 0, create, Succeeded),
            (304, 0, read, Succeeded),
            (429, 3200, UPSERT, Retry(Throttled(hint))),
            (429, 3092, UPSERT, Retry(Unavailable)),
            (410, 1002, UPSERT, Retry(PartitionGone)),
            (410, 1007, UPSERT, Retry(PartitionGone)),
            (449, 0, UPSERT, Retry(Unavailable)),
            (424, 0, UPSERT, Retry(Unavailable)),
            (503, 0, UPSERT, Retry(Unavailable)),
            (404, 1002, read, Retry(Unavailable)),
            (404, 0, read, Failed),
            (400, 0, UPSERT, Failed),
            (413, 0, UPSERT, Failed),
            (413, 3402, UPSERT, Retry(TooLarge)),
            (413, 3402, OperationState { sent_alone: true, ..UPSERT }, Failed),
            (408, 0, read, Retry(MaybeApplied)),
            (500, 0, UPSERT, Undecided),
            (500, 0, repeated, Retry(MaybeApplied)),
            (409, 0, create, Failed),
            // The item that is there may be its own.
            (409, 0, repeated, Undecided),
            (400, 0, repeated, Failed),
        ] {
            let operation_outcome = outcome_of_result(Status(status), SubStatus(sub_status), hint, &state);
            assert_eq!(operation_outcome, expected, "{status}/{sub_status} {state:?}");
        }
    }

    #[test]
    fn each_failure_of_a_request_has_its_outcome() {
        use OperationOutcome::{Failed, Retry, Undecided};
        use RetryReason::{MaybeApplied, PartitionGone, Throttled, TooLarge, Unavailable};
        let error = |kind| Error::new(kind, "no");
        let failed_with = |status, sub_status| Error::of_response(Status(status), SubStatus(sub_status), b"");
        let alone = OperationState { sent_alone: true, ..UPSERT };
        let repeatable = OperationState { repeatable: true, ..UPSERT };
        let maybe_applied = OperationState { maybe_applied: true, ..repeatable };
        let read = OperationState { kind: OperationKind::Read, ..repeatable };
        for (error, state, expected) in [
            (error(ErrorKind::Undecided), UPSERT, Undecided),
            (error(ErrorKind::Undecided), repeatable, Retry(MaybeApplied)),
            (error(ErrorKind::Undecided), read, Retry(MaybeApplied)),
            (failed_with(429, 3200), UPSERT, Retry(Throttled(None))),
            (failed_with(410, 1002), UPSERT, Retry(PartitionGone)),
            (failed_with(400, 1024), UPSERT, Retry(PartitionGone)),
            (failed_with(413, 0), UPSERT, Retry(TooLarge)),
            (failed_with(413, 0), alone, Failed),
            (failed_with(400, 0), UPSERT, Retry(TooLarge)),
            (failed_with(400, 0), alone, Failed),
            (failed_with(401, 0), UPSERT, Failed),
            (failed_with(401, 0), maybe_applied, Undecided),
            (failed_with(404, 1003), UPSERT, Failed),
            (error(ErrorKind::Unavailable), UPSERT, Retry(Unavailable)),
            (error(ErrorKind::DeadlineExceeded), UPSERT, Retry(Unavailable)),
            (error(ErrorKind::BadResponse), UPSERT, Undecided),
            (error(ErrorKind::BadResponse), read, Failed),
        ] {
            assert_eq!(outcome_of_error(&error, &state), expected, "{error} {state:?}");
        }
    }
}
