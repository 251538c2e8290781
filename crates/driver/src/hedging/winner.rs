//! The better of two results. Pure.
//!
//! A read takes the first final answer. A write takes the first success; an answer that its own twin may have
//! caused (409 of a create, 412 of a conditional write, 404 of a delete) decides nothing before the twin has
//! answered as well.

use crate::gateway::{GatewayOutcome, GatewayResult};
use crate::transport::TransportResponse;
use perihelion_http::exchange::Sent;
use protocol::status::{Status, SubStatus};

use crate::operation::Operation;

/// What became of one of the two attempts.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "at most two live, for the end of one attempt; nearly all are done"
)]
pub(crate) enum Lane {
    /// It was never sent.
    Unused,
    /// It was dropped before its answer came.
    Abandoned,
    /// It came to an end.
    Done(GatewayResult),
}

impl Lane {
    /// Its result, if it has one.
    pub(crate) fn result(&self) -> Option<&GatewayResult> {
        match self {
            Lane::Done(result) => Some(result),
            Lane::Unused | Lane::Abandoned => None,
        }
    }
}

/// Which of the two counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The first.
    First,
    /// The second.
    Second,
}

/// Which result counts, and whether the other attempt may have done what was asked all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The one that counts.
    pub(crate) side: Side,
    /// Whether the other one may have been carried out, unlike what the one that counts says.
    pub(crate) other_maybe_applied: bool,
}

/// Whether a result ends the race, so that the other attempt is dropped.
pub(crate) fn is_final(operation: &Operation, outcome: &GatewayOutcome) -> bool {
    match outcome {
        GatewayOutcome::Success(_) => true,
        GatewayOutcome::ServiceError(answer) => {
            is_decision(answer) && !operation.may_have_caused(answer.status)
        }
        GatewayOutcome::NoResponse { .. } | GatewayOutcome::DeadlineExceeded { .. } => false,
    }
}

/// Whether an answer is about the request and not about the region that gave it.
fn is_decision(answer: &TransportResponse) -> bool {
    match (answer.status, answer.sub_status) {
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

/// Chooses the result that counts, once a race is over.
pub(crate) fn choose(operation: &Operation, first: &Lane, second: &Lane) -> Choice {
    let rank = |lane: &Lane| match lane.result().map(|result| &result.outcome) {
        Some(GatewayOutcome::Success(_)) => 0,
        Some(outcome) if is_final(operation, outcome) => 1,
        Some(GatewayOutcome::ServiceError(answer)) if is_decision(answer) => 2,
        Some(GatewayOutcome::ServiceError(_)) => 3,
        Some(GatewayOutcome::NoResponse { .. } | GatewayOutcome::DeadlineExceeded { .. }) => 4,
        None => 5,
    };
    let side = if rank(second) < rank(first) { Side::Second } else { Side::First };
    let (counts, other) = if side == Side::First { (first, second) } else { (second, first) };
    let succeeded = rank(counts) == 0;
    let other_maybe_applied = !operation.is_read_only() && !succeeded && may_have_been_applied(other);
    Choice { side, other_maybe_applied }
}

/// Whether nobody knows what an attempt did.
fn may_have_been_applied(lane: &Lane) -> bool {
    match lane {
        Lane::Unused => false,
        Lane::Abandoned => true,
        Lane::Done(result) => match &result.outcome {
            GatewayOutcome::Success(_) => true,
            GatewayOutcome::ServiceError(answer) => {
                matches!(answer.status, Status::INTERNAL_SERVER_ERROR | Status::REQUEST_TIMEOUT)
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

    fn done(outcome: GatewayOutcome) -> Lane {
        Lane::Done(GatewayResult { outcome, last: None, earlier: Vec::new() })
    }

    fn answer(status: u16) -> GatewayOutcome {
        let answer = TransportResponse::new(Status(status), ResponseHeaders::default(), Bytes::new());
        if answer.status.is_success() {
            GatewayOutcome::Success(answer)
        } else {
            GatewayOutcome::ServiceError(answer)
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
    fn a_write_told_of_a_conflict_by_its_own_twin_waits_for_the_twin() {
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
            assert_eq!(is_final(operation, &answer(status)), ends, "{:?} {status}", operation.kind());
        }
        assert!(!is_final(&read, &lost(Sent::NotSent)));
    }

    #[test]
    fn success_counts_before_any_failure_and_a_twins_conflict_is_never_the_last_word() {
        use Side::{First, Second};
        let create = Operation::create_item(&ContainerName::new("d", "c"), key(), "{}");
        for (first, second, side, other_maybe_applied) in [
            (done(answer(201)), done(answer(409)), First, false),
            (done(answer(409)), done(answer(201)), Second, false),
            (done(answer(201)), Lane::Abandoned, First, false),
            (Lane::Abandoned, done(answer(201)), Second, false),
            // Neither was carried out, so somebody else's item is there.
            (done(answer(409)), done(answer(409)), First, false),
            (done(answer(409)), done(answer(503)), First, false),
            (done(answer(429)), done(answer(409)), Second, false),
            (done(lost(Sent::NotSent)), done(answer(409)), Second, false),
            // Nobody knows about the other one.
            (done(answer(409)), done(lost(Sent::MaybeSent)), First, true),
            (done(answer(500)), done(answer(409)), Second, true),
            (done(answer(409)), done(GatewayOutcome::DeadlineExceeded { sent: Sent::Sent }), First, true),
            (done(answer(409)), Lane::Abandoned, First, true),
            (done(answer(409)), Lane::Unused, First, false),
        ] {
            let choice = choose(&create, &first, &second);
            assert_eq!(choice, Choice { side, other_maybe_applied }, "{first:?} {second:?}");
        }
    }

    #[test]
    fn a_read_takes_the_answer_that_says_most() {
        use Side::{First, Second};
        let read = Operation::read_item(&ContainerName::new("d", "c"), key(), "i");
        for (first, second, side) in [
            (done(answer(503)), done(answer(404)), Second),
            (done(lost(Sent::Sent)), done(answer(503)), Second),
            (done(answer(503)), done(answer(503)), First),
            (Lane::Abandoned, done(answer(404)), Second),
        ] {
            assert_eq!(choose(&read, &first, &second), Choice { side, other_maybe_applied: false });
        }
    }
}
