//! Maps the last outcome of an operation to the error that the caller gets. Pure: the time of day is an argument.

use crate::gateway::GatewayOutcome;
use crate::transport::TransportResponse;
use std::time::{Duration, SystemTime};

use protocol::headers as names;
use protocol::status::{Status, SubStatus};

use super::decision::GiveUpReason;
use crate::error::{Error, ErrorKind};

/// How far apart two clocks may be before the service rejects signatures as too old, less a minute for the network.
const SKEW_MAX: Duration = Duration::from_secs(14 * 60);

/// The error of an operation that was given up.
pub(crate) fn given_up(reason: GiveUpReason, outcome: GatewayOutcome, time_of_day: SystemTime) -> Error {
    let error = of_outcome(outcome, time_of_day);
    match reason {
        GiveUpReason::ServiceError => error,
        // A response that cannot be read says more than that no region could be reached.
        GiveUpReason::Unreachable if error.kind() == ErrorKind::BadResponse => error,
        GiveUpReason::Unreachable => error.with_kind(ErrorKind::Unavailable),
        GiveUpReason::Undecided => error.with_kind(ErrorKind::Undecided),
        GiveUpReason::Deadline => error.with_kind(ErrorKind::DeadlineExceeded),
        GiveUpReason::Credential => error.with_kind(ErrorKind::Unauthenticated),
        GiveUpReason::InvalidResponse => error.with_kind(ErrorKind::BadResponse),
        GiveUpReason::InvalidRequest => error.with_kind(ErrorKind::BadRequest),
    }
}

/// The error of an operation whose next attempt would come too late.
pub(crate) fn out_of_time(outcome: GatewayOutcome, undecided: bool, time_of_day: SystemTime) -> Error {
    let kind = if undecided { ErrorKind::Undecided } else { ErrorKind::DeadlineExceeded };
    of_outcome(outcome, time_of_day).with_kind(kind)
}

/// The error of an outcome, without regard to earlier attempts.
pub(crate) fn of_outcome(outcome: GatewayOutcome, time_of_day: SystemTime) -> Error {
    match outcome {
        GatewayOutcome::Success(response) | GatewayOutcome::ServiceError(response) => {
            of_response(&response, time_of_day)
        }
        GatewayOutcome::NoResponse { error, .. } => {
            let http_kind = perihelion_http::Error::find_in(&error).map(perihelion_http::Error::kind);
            let kind = match error.kind() {
                azure_core::error::ErrorKind::Credential => ErrorKind::Unauthenticated,
                azure_core::error::ErrorKind::DataConversion => ErrorKind::BadResponse,
                _ if http_kind == Some(perihelion_http::ErrorKind::Malformed) => ErrorKind::BadResponse,
                _ => ErrorKind::Unavailable,
            };
            Error::new(kind, error.to_string()).with_source(error)
        }
        GatewayOutcome::DeadlineExceeded { .. } => {
            Error::new(ErrorKind::DeadlineExceeded, "the deadline passed before a response came")
        }
    }
}

fn of_response(response: &TransportResponse, time_of_day: SystemTime) -> Error {
    let mut error = Error::of_response(response.status, response.sub_status, &response.body);
    if is_clock_skew(response, time_of_day) {
        let theirs = response.headers.get(names::DATE).unwrap_or("another time");
        let message = format!(
            "the clock of this machine is wrong, or the service's: it is {} here and {theirs} there, and \
             signatures of another time are rejected",
            httpdate::fmt_http_date(time_of_day)
        );
        error =
            Error::new(ErrorKind::Unauthenticated, message).with_status(response.status, response.sub_status);
    }
    if let Some(id) = response.headers.get(names::ACTIVITY_ID) {
        error = error.with_activity_id(id);
    }
    if let Some(wait) = response.headers.get(names::RETRY_AFTER_MS).and_then(|text| text.parse().ok()) {
        error = error.with_retry_after(Duration::from_millis(wait));
    }
    error
}

/// Whether a request was rejected because the clocks differ: the service says so, or its clock is so far off that
/// it would have rejected the request in any case.
fn is_clock_skew(response: &TransportResponse, time_of_day: SystemTime) -> bool {
    /// Part of the service's message for signatures whose date is too old or too new.
    const MESSAGE: &[u8] = b"not valid at the current time";
    match (response.status, response.sub_status) {
        (Status::FORBIDDEN, SubStatus::WRITE_FORBIDDEN | SubStatus::DATABASE_ACCOUNT_NOT_FOUND) => false,
        (Status::UNAUTHORIZED | Status::FORBIDDEN, _) => {
            let skew = response
                .headers
                .get(names::DATE)
                .and_then(|date| httpdate::parse_http_date(date).ok())
                .and_then(|theirs| {
                    theirs.duration_since(time_of_day).or_else(|_| time_of_day.duration_since(theirs)).ok()
                });
            skew.is_some_and(|skew| skew > SKEW_MAX)
                || response.body.windows(MESSAGE.len()).any(|window| window == MESSAGE)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use azure_core::http::headers::{HeaderName, Headers};

    use super::*;

    #[test]
    fn a_rejected_date_is_an_error_that_mentions_the_clock() {
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
            let response = TransportResponse::new(Status(status), headers.into(), body.into());
            let error = of_outcome(GatewayOutcome::ServiceError(response), now);
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
