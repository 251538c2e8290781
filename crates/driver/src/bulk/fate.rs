//! What an answer means for one operation. Pure.
//!
//! A request of many operations is answered as a whole or operation by operation; either way each operation
//! is done, refused, to be sent again, or nobody knows.

use std::time::Duration;

use protocol::status::{Status, SubStatus};

use crate::error::{Error, ErrorKind};
use crate::operation::OperationKind;

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It did what it asked.
    Done,
    /// It never will.
    Refused,
    /// It may have, and must not be tried again.
    Undecided,
    /// It is sent again.
    Again(Cause),
}

/// Why an operation is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The partition has spent its request units; it is asked again after so long, if it said.
    Throttled(Option<Duration>),
    /// It belongs to another partition by now.
    Gone,
    /// Nothing was done, and it may be in a moment.
    Busy,
    /// The request, or its answer, was too much at once.
    TooMuch,
    /// It may have been done, and doing it twice does no harm.
    Lost,
}

/// What is to be known of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// What it does.
    pub(super) kind: OperationKind,
    /// Whether under a condition.
    pub(super) conditional: bool,
    /// Whether it may be sent again although it may have been done.
    pub(super) repeatable: bool,
    /// Whether an earlier request may have done it.
    pub(super) maybe_applied: bool,
    /// Whether it travelled alone.
    pub(super) alone: bool,
}

/// The fate of an operation that has an answer of its own.
pub(super) fn of_result(
    status: Status,
    sub_status: SubStatus,
    hint: Option<Duration>,
    facts: &Facts,
) -> Fate {
    match (status, sub_status) {
        (status, _) if !status.is_error() => Fate::Done,
        (Status::TOO_MANY_REQUESTS, SubStatus::SYSTEM_RESOURCE_UNAVAILABLE) => Fate::Again(Cause::Busy),
        (Status::TOO_MANY_REQUESTS, _) => Fate::Again(Cause::Throttled(hint)),
        (Status::GONE, _) => Fate::Again(Cause::Gone),
        (Status::SERVICE_UNAVAILABLE | Status::RETRY_WITH | Status::FAILED_DEPENDENCY, _)
        | (Status::NOT_FOUND, SubStatus::READ_SESSION_NOT_AVAILABLE) => Fate::Again(Cause::Busy),
        (Status::REQUEST_ENTITY_TOO_LARGE, SubStatus::RESPONSE_TOO_LARGE) if !facts.alone => {
            Fate::Again(Cause::TooMuch)
        }
        (Status::INTERNAL_SERVER_ERROR | Status::REQUEST_TIMEOUT, _) => lost(facts),
        (status, _) if facts.maybe_applied && facts.kind.may_have_caused(status, facts.conditional) => {
            Fate::Undecided
        }
        _ => Fate::Refused,
    }
}

/// The fate of an operation whose request failed as a whole, after all that the driver tries by itself.
pub(super) fn of_error(error: &Error, facts: &Facts) -> Fate {
    let is_status = |status, sub_status| error.is_status(status, sub_status);
    match error.kind() {
        ErrorKind::Undecided => lost(facts),
        ErrorKind::Throttled => Fate::Again(Cause::Throttled(error.retry_after())),
        _ if error.status() == Some(Status::GONE)
            || is_status(Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH) =>
        {
            Fate::Again(Cause::Gone)
        }
        // One bad operation spoils the request of all: the others are told apart by halves.
        ErrorKind::TooLarge | ErrorKind::BadRequest if !facts.alone => Fate::Again(Cause::TooMuch),
        ErrorKind::Unavailable | ErrorKind::DeadlineExceeded | ErrorKind::SessionUnavailable => {
            Fate::Again(Cause::Busy)
        }
        ErrorKind::BadResponse if !facts.kind.is_read_only() => Fate::Undecided,
        _ if facts.maybe_applied && !facts.kind.is_read_only() => Fate::Undecided,
        _ => Fate::Refused,
    }
}

/// The fate of an operation that may have been done.
fn lost(facts: &Facts) -> Fate {
    if facts.repeatable { Fate::Again(Cause::Lost) } else { Fate::Undecided }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSERT: Facts = Facts {
        kind: OperationKind::Upsert,
        conditional: false,
        repeatable: false,
        maybe_applied: false,
        alone: false,
    };

    #[test]
    fn each_answer_of_an_operation_has_its_fate() {
        use Cause::{Busy, Gone, Lost, Throttled, TooMuch};
        use Fate::{Again, Done, Refused, Undecided};
        let hint = Some(Duration::from_millis(7));
        let create = Facts { kind: OperationKind::Create, ..UPSERT };
        let repeated = Facts { repeatable: true, maybe_applied: true, ..create };
        let read = Facts { kind: OperationKind::Read, repeatable: true, ..UPSERT };
        for (status, sub_status, facts, expected) in [
            (200, 0, UPSERT, Done),
            (201, 0, create, Done),
            (304, 0, read, Done),
            (429, 3200, UPSERT, Again(Throttled(hint))),
            (429, 3092, UPSERT, Again(Busy)),
            (410, 1002, UPSERT, Again(Gone)),
            (410, 1007, UPSERT, Again(Gone)),
            (449, 0, UPSERT, Again(Busy)),
            (424, 0, UPSERT, Again(Busy)),
            (503, 0, UPSERT, Again(Busy)),
            (404, 1002, read, Again(Busy)),
            (404, 0, read, Refused),
            (400, 0, UPSERT, Refused),
            (413, 0, UPSERT, Refused),
            (413, 3402, UPSERT, Again(TooMuch)),
            (413, 3402, Facts { alone: true, ..UPSERT }, Refused),
            (408, 0, read, Again(Lost)),
            (500, 0, UPSERT, Undecided),
            (500, 0, repeated, Again(Lost)),
            (409, 0, create, Refused),
            // Its own twin may be what is there.
            (409, 0, repeated, Undecided),
            (400, 0, repeated, Refused),
        ] {
            let fate = of_result(Status(status), SubStatus(sub_status), hint, &facts);
            assert_eq!(fate, expected, "{status}/{sub_status} {facts:?}");
        }
    }

    #[test]
    fn each_failure_of_a_request_has_its_fate() {
        use Cause::{Busy, Gone, Lost, Throttled, TooMuch};
        use Fate::{Again, Refused, Undecided};
        let error = |kind| Error::new(kind, "no");
        let answered = |status, sub_status| Error::of_answer(Status(status), SubStatus(sub_status), b"");
        let alone = Facts { alone: true, ..UPSERT };
        let repeatable = Facts { repeatable: true, ..UPSERT };
        let maybe_applied = Facts { maybe_applied: true, ..repeatable };
        let read = Facts { kind: OperationKind::Read, ..repeatable };
        for (error, facts, expected) in [
            (error(ErrorKind::Undecided), UPSERT, Undecided),
            (error(ErrorKind::Undecided), repeatable, Again(Lost)),
            (error(ErrorKind::Undecided), read, Again(Lost)),
            (answered(429, 3200), UPSERT, Again(Throttled(None))),
            (answered(410, 1002), UPSERT, Again(Gone)),
            (answered(400, 1024), UPSERT, Again(Gone)),
            (answered(413, 0), UPSERT, Again(TooMuch)),
            (answered(413, 0), alone, Refused),
            (answered(400, 0), UPSERT, Again(TooMuch)),
            (answered(400, 0), alone, Refused),
            (answered(401, 0), UPSERT, Refused),
            (answered(401, 0), maybe_applied, Undecided),
            (answered(404, 1003), UPSERT, Refused),
            (error(ErrorKind::Unavailable), UPSERT, Again(Busy)),
            (error(ErrorKind::DeadlineExceeded), UPSERT, Again(Busy)),
            (error(ErrorKind::BadResponse), UPSERT, Undecided),
            (error(ErrorKind::BadResponse), read, Refused),
        ] {
            assert_eq!(of_error(&error, &facts), expected, "{error} {facts:?}");
        }
    }
}
