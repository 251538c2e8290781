//! No response: was the request sent?
//!
//! Three failures are not about the region: a credential without a token, a request that cannot be sent as it is,
//! and a response that cannot be read. A request that was not sent may be sent anywhere. A request that may have
//! been received is repeated only if it is idempotent; for any other write the caller gets `Undecided`.

use azure_core::error::ErrorKind;
use perihelion_http::trace::{Sent, Step};

use super::super::decision::{Decision, Effect, GiveUpReason};
use super::super::retry_state::RetryCause;
use super::Situation;
use crate::routing::Unavailable;

pub(super) fn evaluate(error: &azure_core::Error, sent: Sent, situation: &Situation<'_>) -> Decision {
    match (error.kind(), sent) {
        (ErrorKind::Credential, _) => {
            Decision::give_up(GiveUpReason::Credential, "the credential gave no token")
        }
        (ErrorKind::DataConversion, _) if situation.operation.is_read_only() => {
            Decision::give_up(GiveUpReason::InvalidResponse, "the response cannot be read")
        }
        (_, Sent::NotSent) if is_invalid(error) => invalid_request(situation),
        (_, Sent::NotSent) => not_sent(situation),
        // A response that cannot be read is one all the same.
        (ErrorKind::DataConversion, _) => maybe_sent(&Situation { no_response: None, ..*situation }),
        (_, Sent::MaybeSent | Sent::Sent) => maybe_sent(situation),
    }
}

/// Whether the request could not be built, or its body not be read: no region is to blame, and none would take it.
fn is_invalid(error: &azure_core::Error) -> bool {
    use perihelion_http::ErrorKind::{Invalid, RequestBody};
    // A host name that cannot be asked for a certificate is invalid as well, but later, and for its region alone.
    perihelion_http::Error::find_in(error).is_some_and(|error| {
        error.kind() == RequestBody || error.kind() == Invalid && error.step() == Step::Prepare
    })
}

fn invalid_request(situation: &Situation<'_>) -> Decision {
    let undecided = situation.state.maybe_applied && !situation.operation.is_read_only();
    let error = if undecided { GiveUpReason::Undecided } else { GiveUpReason::InvalidRequest };
    Decision::give_up(error, "the request cannot be sent as it is")
}

fn not_sent(situation: &Situation<'_>) -> Decision {
    let reason = "the region cannot be reached";
    let state = situation.state;
    let decision = if state.count(RetryCause::NotSent) >= situation.policy.connection_retries_max {
        let undecided = state.maybe_applied && !situation.operation.is_read_only();
        let error = if undecided { GiveUpReason::Undecided } else { GiveUpReason::Unreachable };
        Decision::give_up(error, reason)
    } else {
        situation.retry_in_next_region(state.counted(RetryCause::NotSent), reason)
    };
    decision
        .with(Effect::MarkUnavailable(situation.region.clone(), Unavailable::All))
        .with_some(situation.refresh_if_stuck())
}

fn maybe_sent(situation: &Situation<'_>) -> Decision {
    let reason = "no response came";
    let (operation, state) = (situation.operation, situation.state);
    let is_write = !operation.is_read_only();
    let decision = if !operation.is_idempotent() {
        Decision::give_up(GiveUpReason::Undecided, reason)
    } else if state.count(RetryCause::Failover) >= situation.policy.failover_retries_max {
        let error = if is_write { GiveUpReason::Undecided } else { GiveUpReason::Unreachable };
        Decision::give_up(error, reason)
    } else {
        let next = state.counted(RetryCause::Failover).maybe_applied_if(is_write);
        situation.retry_in_next_region(next, reason)
    };
    match (situation.partition_failed(), region_failed(situation)) {
        (Some(partition), _) => decision.with(partition).with_some(situation.region_silent()),
        (None, Some(region)) => decision.with(region),
        (None, None) => decision.with_some(situation.region_silent()),
    }
}

/// A read of metadata (a container, its partition ranges) that gets no response speaks against the region: no
/// partition is known to count it for, and the next such read would wait there just as long, without hedging.
fn region_failed(situation: &Situation<'_>) -> Option<Effect> {
    let is_metadata_read = situation.partition.is_none() && situation.operation.is_read_only();
    is_metadata_read.then(|| Effect::MarkUnavailable(situation.region.clone(), Unavailable::All))
}
