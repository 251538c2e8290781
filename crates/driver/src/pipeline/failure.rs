//! From the last outcome to the error the caller hears.

use std::time::Duration;

use protocol::headers as names;

use super::step::Why;
use crate::error::{Error, ErrorKind};
use crate::operation::header;
use crate::transport::outcome::{Answer, TransportOutcome};

/// The error of an operation that was given up.
pub(crate) fn error(why: Why, outcome: TransportOutcome) -> Error {
    let error = of_outcome(outcome);
    match why {
        Why::Answer => error,
        Why::Unreachable => error.with_kind(ErrorKind::Unavailable),
        Why::Undecided => error.with_kind(ErrorKind::Undecided),
        Why::Deadline => error.with_kind(ErrorKind::DeadlineExceeded),
        Why::Credential => error.with_kind(ErrorKind::Unauthenticated),
        Why::Nonsense => error.with_kind(ErrorKind::BadResponse),
    }
}

/// The error of an operation whose next attempt would come too late.
pub(crate) fn out_of_time(outcome: TransportOutcome, undecided: bool) -> Error {
    let kind = if undecided { ErrorKind::Undecided } else { ErrorKind::DeadlineExceeded };
    of_outcome(outcome).with_kind(kind)
}

/// What an outcome says by itself.
pub(crate) fn of_outcome(outcome: TransportOutcome) -> Error {
    match outcome {
        TransportOutcome::Success(answer) | TransportOutcome::ServiceError(answer) => of_answer(&answer),
        TransportOutcome::NoAnswer { error, .. } => {
            let kind = match error.kind() {
                azure_core::error::ErrorKind::Credential => ErrorKind::Unauthenticated,
                azure_core::error::ErrorKind::DataConversion => ErrorKind::BadResponse,
                _ => ErrorKind::Unavailable,
            };
            Error::new(kind, error.to_string()).with_source(error)
        }
        TransportOutcome::DeadlineExceeded { .. } => {
            Error::new(ErrorKind::DeadlineExceeded, "the deadline passed before an answer came")
        }
    }
}

fn of_answer(answer: &Answer) -> Error {
    let mut error = Error::of_answer(answer.status, answer.sub_status, &answer.body);
    if let Some(id) = header(&answer.headers, names::ACTIVITY_ID) {
        error = error.with_activity_id(id);
    }
    if let Some(wait) = header(&answer.headers, names::RETRY_AFTER_MS).and_then(|text| text.parse().ok()) {
        error = error.with_retry_after(Duration::from_millis(wait));
    }
    error
}
