//! From the last outcome to the error the caller hears. Pure: the time of day is an argument.

use crate::gateway::GatewayOutcome;
use crate::transport::TransportResponse;
use std::time::{Duration, SystemTime};

use protocol::headers as names;
use protocol::status::{Status, SubStatus};

use super::step::Why;
use crate::error::{Error, ErrorKind};

/// How far apart two clocks may be before the service takes signatures for old, with a little left for the way.
const SKEW_MAX: Duration = Duration::from_secs(14 * 60);

/// The error of an operation that was given up.
pub(crate) fn error(why: Why, outcome: GatewayOutcome, time_of_day: SystemTime) -> Error {
    let error = of_outcome(outcome, time_of_day);
    match why {
        Why::Answer => error,
        // That nobody could be understood says more than that nobody could be reached.
        Why::Unreachable if error.kind() == ErrorKind::BadResponse => error,
        Why::Unreachable => error.with_kind(ErrorKind::Unavailable),
        Why::Undecided => error.with_kind(ErrorKind::Undecided),
        Why::Deadline => error.with_kind(ErrorKind::DeadlineExceeded),
        Why::Credential => error.with_kind(ErrorKind::Unauthenticated),
        Why::Nonsense => error.with_kind(ErrorKind::BadResponse),
    }
}

/// The error of an operation whose next attempt would come too late.
pub(crate) fn out_of_time(outcome: GatewayOutcome, undecided: bool, time_of_day: SystemTime) -> Error {
    let kind = if undecided { ErrorKind::Undecided } else { ErrorKind::DeadlineExceeded };
    of_outcome(outcome, time_of_day).with_kind(kind)
}

/// What an outcome says by itself.
pub(crate) fn of_outcome(outcome: GatewayOutcome, time_of_day: SystemTime) -> Error {
    match outcome {
        GatewayOutcome::Success(answer) | GatewayOutcome::ServiceError(answer) => {
            of_answer(&answer, time_of_day)
        }
        GatewayOutcome::NoResponse { error, .. } => {
            let ours = perihelion_http::Error::of(&error).map(perihelion_http::Error::kind);
            let kind = match error.kind() {
                azure_core::error::ErrorKind::Credential => ErrorKind::Unauthenticated,
                azure_core::error::ErrorKind::DataConversion => ErrorKind::BadResponse,
                _ if ours == Some(perihelion_http::ErrorKind::Malformed) => ErrorKind::BadResponse,
                _ => ErrorKind::Unavailable,
            };
            Error::new(kind, error.to_string()).with_source(error)
        }
        GatewayOutcome::DeadlineExceeded { .. } => {
            Error::new(ErrorKind::DeadlineExceeded, "the deadline passed before an answer came")
        }
    }
}

fn of_answer(answer: &TransportResponse, time_of_day: SystemTime) -> Error {
    let mut error = Error::of_answer(answer.status, answer.sub_status, &answer.body);
    if is_about_the_clock(answer, time_of_day) {
        let theirs = answer.headers.get(names::DATE).unwrap_or("another time");
        let message = format!(
            "the clock of this machine is wrong, or the service's: it is {} here and {theirs} there, and \
             signatures of another time are refused",
            httpdate::fmt_http_date(time_of_day)
        );
        error = Error::new(ErrorKind::Unauthenticated, message).with_status(answer.status, answer.sub_status);
    }
    if let Some(id) = answer.headers.get(names::ACTIVITY_ID) {
        error = error.with_activity_id(id);
    }
    if let Some(wait) = answer.headers.get(names::RETRY_AFTER_MS).and_then(|text| text.parse().ok()) {
        error = error.with_retry_after(Duration::from_millis(wait));
    }
    error
}

/// Whether a refusal is due to clocks that differ: the service says so, or its clock is so far off that it would
/// have refused in any case.
fn is_about_the_clock(answer: &TransportResponse, time_of_day: SystemTime) -> bool {
    /// What the service says.
    const SAID: &[u8] = b"not valid at the current time";
    match (answer.status, answer.sub_status) {
        (Status::FORBIDDEN, SubStatus::WRITE_FORBIDDEN | SubStatus::DATABASE_ACCOUNT_NOT_FOUND) => false,
        (Status::UNAUTHORIZED | Status::FORBIDDEN, _) => {
            let apart = answer
                .headers
                .get(names::DATE)
                .and_then(|date| httpdate::parse_http_date(date).ok())
                .and_then(|theirs| {
                    theirs.duration_since(time_of_day).or_else(|_| time_of_day.duration_since(theirs)).ok()
                });
            apart.is_some_and(|apart| apart > SKEW_MAX)
                || answer.body.windows(SAID.len()).any(|words| words == SAID)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use azure_core::http::headers::{HeaderName, Headers};

    use super::*;

    #[test]
    fn a_refusal_by_another_clock_says_to_look_at_the_clock() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        for (status, sub_status, date, body, is_clock) in [
            (401, 0, Some(now + hours(2)), "", true),
            (403, 0, Some(now - hours(2)), "", true),
            (403, 0, Some(now - Duration::from_secs(60)), "", false),
            (403, 0, None, "The token is not valid at the current time.", true),
            (403, 5300, Some(now), "no permission", false),
            (403, 3, Some(now + hours(2)), "", false),
            (404, 0, Some(now + hours(2)), "", false),
        ] {
            let mut headers = Headers::new();
            if let Some(date) = date {
                headers.insert(HeaderName::from_static("date"), httpdate::fmt_http_date(date));
            }
            if sub_status != 0 {
                headers.insert(HeaderName::from_static("x-ms-substatus"), sub_status.to_string());
            }
            let answer = TransportResponse::new(Status(status), headers.into(), body.into());
            let error = of_outcome(GatewayOutcome::ServiceError(answer), now);
            assert_eq!(
                error.message().contains("clock"),
                is_clock,
                "{status}/{sub_status} {date:?}: {error}"
            );
            assert_eq!(error.kind() == ErrorKind::Unauthenticated, is_clock, "{error}");
            assert_eq!(error.status(), Some(Status(status)));
        }
    }
}
