//! Which of two raced attempts counts. Pure.
//!
//! A read takes the first final response. A write takes the first success; a response that the other attempt may
//! have caused (409 of a create, 412 of a conditional write, 404 of a delete) is not final before the other
//! attempt has ended as well.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::gateway::{GatewayOutcome, GatewayResult};
use crate::transport::TransportResponse;
use perihelion_http::trace::Sent;
use protocol::status::{Status, SubStatus};

use crate::operation::Operation;

/// The state of one of the two attempts when the race ended.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "at most two live, for the end of one attempt; nearly all are done"
)]
pub(crate) enum RaceAttempt {
    /// It was not needed, and never sent.
    NotStarted,
    /// It was dropped before its response came.
    Abandoned,
    /// It ended with a result.
    Finished(GatewayResult),
}

impl RaceAttempt {
    /// The result of the attempt, if it has one.
    pub(crate) fn result(&self) -> Option<&GatewayResult> {
        match self {
            RaceAttempt::Finished(result) => Some(result),
            RaceAttempt::NotStarted | RaceAttempt::Abandoned => None,
        }
    }
}

/// One of the two attempts of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The attempt that started first.
    First,
    /// The hedged attempt in another region.
    Second,
}

/// Which attempt counts, and whether the other one may have been carried out all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Winner {
    /// The attempt that counts.
    pub(crate) side: Side,
    /// Whether the other attempt may have been carried out, unlike what the one that counts says.
    pub(crate) other_maybe_applied: bool,
}

/// Whether a result ends the race, so that the other attempt is dropped.
pub(crate) fn is_final(operation: &Operation, outcome: &GatewayOutcome) -> bool {
    match outcome {
        GatewayOutcome::Success(_) => true,
        GatewayOutcome::ServiceError(response) => {
            is_about_request(response) && !operation.may_have_caused(response.status)
        }
        GatewayOutcome::NoResponse { .. } | GatewayOutcome::DeadlineExceeded { .. } => false,
    }
}

/// Whether a response is about the request and not about the region that gave it.
fn is_about_request(response: &TransportResponse) -> bool {
    match (response.status, response.sub_status) {
        (Status::NOT_FOUND, SubStatus::NONE) => true,
        (Status::NOT_FOUND, _) => false,
        (Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH) => false,
        (status, _) => matches!(
            status,
            Status::BAD_REQUEST
                | Status::UNAUTHORIZED
                | Status::METHOD_NOT_ALLOWED
                | Status::CONFLICT
                | Status::PRECONDITION_FAILED
                | Status::REQUEST_ENTITY_TOO_LARGE
        ),
    }
}

/// Chooses the attempt that counts, once a race is over.
pub(crate) fn choose(operation: &Operation, first: &RaceAttempt, second: &RaceAttempt) -> Winner {
    let rank = |attempt: &RaceAttempt| match attempt.result().map(|result| &result.outcome) {
        Some(GatewayOutcome::Success(_)) => 0,
        Some(outcome) if is_final(operation, outcome) => 1,
        Some(GatewayOutcome::ServiceError(response)) if is_about_request(response) => 2,
        Some(GatewayOutcome::ServiceError(_)) => 3,
        Some(GatewayOutcome::NoResponse { .. } | GatewayOutcome::DeadlineExceeded { .. }) => 4,
        None => 5,
    };
    let side = if rank(second) < rank(first) { Side::Second } else { Side::First };
    let (counts, other) = if side == Side::First { (first, second) } else { (second, first) };
    let succeeded = rank(counts) == 0;
    let other_maybe_applied = !operation.is_read_only() && !succeeded && may_have_been_applied(other);
    Winner { side, other_maybe_applied }
}

/// Whether an attempt may have been carried out.
fn may_have_been_applied(attempt: &RaceAttempt) -> bool {
    match attempt {
        RaceAttempt::NotStarted => false,
        RaceAttempt::Abandoned => true,
        RaceAttempt::Finished(result) => match &result.outcome {
            GatewayOutcome::Success(_) => true,
            GatewayOutcome::ServiceError(response) => {
                matches!(response.status, Status::INTERNAL_SERVER_ERROR | Status::REQUEST_TIMEOUT)
            }
            GatewayOutcome::NoResponse { sent, .. } | GatewayOutcome::DeadlineExceeded { sent } => {
                *sent != Sent::NotSent
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use crate::operation::ResponseHeaders;
    use bytes::Bytes;
    use protocol::partition::PartitionKey;

    use super::*;
    use crate::operation::{ContainerName, Precondition};

    fn done(outcome: GatewayOutcome) -> RaceAttempt {
        RaceAttempt::Finished(GatewayResult { outcome, last: None, earlier: Vec::new() })
    }

    fn response(status: u16) -> GatewayOutcome {
        let response = TransportResponse::new(Status(status), ResponseHeaders::default(), Bytes::new());
        if response.status.is_success() {
            GatewayOutcome::Success(response)
        } else {
            GatewayOutcome::ServiceError(response)
        }
    }

    fn lost(sent: Sent) -> GatewayOutcome {
        let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Io, "reset");
        GatewayOutcome::NoResponse { error, sent }
    }

    fn key() -> PartitionKey {
        PartitionKey::single("k")
    }

    #[test]
    fn a_conflict_caused_by_the_other_attempt_waits_for_it() {
        let name = ContainerName::new("d", "c");
        let create = Operation::create_item(&name, key(), "{}");
        let conditional = Operation::replace_item(&name, key(), "i", "{}")
            .with_precondition(Precondition::IfMatch("\"e\"".into()));
        let delete = Operation::delete_item(&name, key(), "i");
        let read = Operation::read_item(&name, key(), "i");
        for (operation, status, ends) in [
            (&create, 201, true),
            (&create, 409, false),
            (&create, 400, true),
            (&create, 503, false),
            (&conditional, 412, false),
            (&conditional, 404, true),
            (&delete, 404, false),
            (&delete, 204, true),
            (&read, 404, true),
            (&read, 503, false),
            (&read, 429, false),
            (&read, 200, true),
        ] {
            assert_eq!(is_final(operation, &response(status)), ends, "{:?} {status}", operation.kind());
        }
        assert!(!is_final(&read, &lost(Sent::NotSent)));
    }

    #[test]
    fn success_wins_and_a_conflict_of_the_other_attempt_is_not_final() {
        use Side::{First, Second};
        let create = Operation::create_item(&ContainerName::new("d", "c"), key(), "{}");
        for (first, second, side, other_maybe_applied) in [
            (done(response(201)), done(response(409)), First, false),
            (done(response(409)), done(response(201)), Second, false),
            (done(response(201)), RaceAttempt::Abandoned, First, false),
            (RaceAttempt::Abandoned, done(response(201)), Second, false),
            // Neither was carried out, so another client's item is there.
            (done(response(409)), done(response(409)), First, false),
            (done(response(409)), done(response(503)), First, false),
            (done(response(429)), done(response(409)), Second, false),
            (done(lost(Sent::NotSent)), done(response(409)), Second, false),
            // It is not known whether the other one was carried out.
            (done(response(409)), done(lost(Sent::MaybeSent)), First, true),
            (done(response(500)), done(response(409)), Second, true),
            (done(response(409)), done(GatewayOutcome::DeadlineExceeded { sent: Sent::Sent }), First, true),
            (done(response(409)), RaceAttempt::Abandoned, First, true),
            (done(response(409)), RaceAttempt::NotStarted, First, false),
        ] {
            let choice = choose(&create, &first, &second);
            assert_eq!(choice, Winner { side, other_maybe_applied }, "{first:?} {second:?}");
        }
    }

    #[test]
    fn a_read_takes_the_most_conclusive_response() {
        use Side::{First, Second};
        let read = Operation::read_item(&ContainerName::new("d", "c"), key(), "i");
        for (first, second, side) in [
            (done(response(503)), done(response(404)), Second),
            (done(lost(Sent::Sent)), done(response(503)), Second),
            (done(response(503)), done(response(503)), First),
            (RaceAttempt::Abandoned, done(response(404)), Second),
        ] {
            assert_eq!(choose(&read, &first, &second), Winner { side, other_maybe_applied: false });
        }
    }
}
