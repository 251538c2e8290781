//! What the outcome of an attempt means: pure, one file per family of responses.
//!
//! In: the outcome of an attempt and the [`Situation`] it was made in. Out: a [`Decision`], which is a step and
//! the effects that go with it. Nothing here sends, sleeps, locks or reads a clock; random values are arguments.
//! All rules together are the table in `docs/retries.md`, which a test compares with what the functions do.

#![warn(clippy::wildcard_enum_match_arm)]

mod gone;
mod retry_with;
mod server_error;
mod session_unavailable;
mod stale_container;
mod unavailable;
mod unreachable;
mod write_forbidden;

#[cfg(test)]
mod tests;

use std::time::Duration;

use perihelion_http::trace::Sent;
use protocol::status::{Status, SubStatus};

use super::decision::{Decision, Effect, GiveUpReason, NoResponse};
use super::retry_state::{RetryCause, RetryState, backoff};
use crate::gateway::GatewayOutcome;
use crate::operation::Operation;
use crate::options::RetryPolicy;
use crate::routing::{PartitionFailure, PartitionId, PartitionRegion, Region};
use crate::transport::TransportResponse;

/// The first wait after all regions were tried, or where there is only one.
const ALL_REGIONS_WAIT: Duration = Duration::from_millis(100);
/// The longest wait after all regions were tried.
const ALL_REGIONS_WAIT_MAX: Duration = Duration::from_secs(1);

/// The situation of an attempt: everything a decision may depend on besides the outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    /// The operation that was attempted.
    pub(crate) operation: &'a Operation,
    /// The region the attempt was sent to.
    pub(crate) region: &'a Region,
    /// Whether one region has every write, and this operation has not tried it yet.
    pub(crate) hub_has_more: bool,
    /// The partition of the operation, when that is known.
    pub(crate) partition: Option<&'a PartitionId>,
    /// How many other regions the operation has not tried yet.
    pub(crate) other_regions: usize,
    /// Whether a single partition may move its writes to another region.
    pub(crate) partition_failover: bool,
    /// What was tried before this attempt.
    pub(crate) state: &'a RetryState,
    /// How long the attempt was waited for, if that was long and nothing came back at all.
    pub(crate) no_response: Option<NoResponse>,
    /// The limits of retries.
    pub(crate) policy: &'a RetryPolicy,
    /// A value in `0.0..1.0`, for the jitter of waits.
    pub(crate) random: f64,
}

/// Decides what follows an attempt.
pub(crate) fn evaluate(outcome: &GatewayOutcome, situation: &Situation<'_>) -> Decision {
    match outcome {
        GatewayOutcome::Success(_) => Decision::finish(),
        GatewayOutcome::ServiceError(response) => evaluate_response(response, situation),
        GatewayOutcome::NoResponse { error, sent } => unreachable::evaluate(error, *sent, situation),
        GatewayOutcome::DeadlineExceeded { sent } => past_deadline(*sent, situation),
    }
}

fn evaluate_response(response: &TransportResponse, situation: &Situation<'_>) -> Decision {
    match (response.status, response.sub_status) {
        (Status::FORBIDDEN, SubStatus::WRITE_FORBIDDEN | SubStatus::DATABASE_ACCOUNT_NOT_FOUND) => {
            write_forbidden::evaluate(response.sub_status, situation)
        }
        (Status::NOT_FOUND, SubStatus::READ_SESSION_NOT_AVAILABLE) => {
            session_unavailable::evaluate(situation)
        }
        (Status::NOT_FOUND, SubStatus::COLLECTION_CREATE_IN_PROGRESS) => {
            stale_container::not_ready(situation)
        }
        (Status::NOT_FOUND, SubStatus::OWNER_RESOURCE_NOT_FOUND)
        | (Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH) => {
            stale_container::evaluate(response, situation)
        }
        (Status::GONE, sub_status) => gone::evaluate(sub_status, situation),
        (Status::SERVICE_UNAVAILABLE, _)
        | (Status::TOO_MANY_REQUESTS, SubStatus::SYSTEM_RESOURCE_UNAVAILABLE) => {
            unavailable::evaluate(situation)
        }
        (Status::INTERNAL_SERVER_ERROR | Status::REQUEST_TIMEOUT, _) => server_error::evaluate(situation),
        (Status::RETRY_WITH, _) => retry_with::evaluate(situation),
        (status, _) if situation.state.maybe_applied && situation.operation.may_have_caused(status) => {
            Decision::give_up(GiveUpReason::Undecided, "an earlier attempt may have caused it")
        }
        _ => Decision::give_up(GiveUpReason::ServiceError, "the response is final"),
    }
}

fn past_deadline(sent: Sent, situation: &Situation<'_>) -> Decision {
    let maybe_applied = situation.state.maybe_applied || sent != Sent::NotSent;
    let undecided = maybe_applied && !situation.operation.is_read_only();
    let error = if undecided { GiveUpReason::Undecided } else { GiveUpReason::Deadline };
    let mut decision = Decision::give_up(error, "the deadline passed");
    decision.effects = match sent {
        // Not even a connection: that is not about the partition.
        Sent::NotSent => situation.region_silent().into_iter().collect(),
        Sent::MaybeSent | Sent::Sent => situation.silence(),
    };
    decision
}

impl Situation<'_> {
    /// The partition in the region of the attempt.
    fn partition_here(&self) -> Option<PartitionRegion> {
        let partition = self.partition?.clone();
        Some(PartitionRegion { partition, region: self.region.clone(), access: self.operation.access() })
    }

    /// Counts a failure of the partition in this region.
    fn partition_failed(&self) -> Option<Effect> {
        Some(Effect::PartitionFailed(self.partition_here()?, PartitionFailure::Definite))
    }

    /// Counts silence of the region: nothing came back from it to this attempt.
    fn region_silent(&self) -> Option<Effect> {
        Some(Effect::RegionSilent(self.region.clone(), self.no_response?))
    }

    /// What an attempt that was given up after a long silence says about its partition and its region.
    pub(crate) fn silence(&self) -> Vec<Effect> {
        let partition = self.no_response.zip(self.partition_here()).map(|(no_response, key)| {
            Effect::PartitionFailed(key, PartitionFailure::Silent { since: no_response.started })
        });
        partition.into_iter().chain(self.region_silent()).collect()
    }

    /// Reads the account's properties again for a write that no other region takes: it waits for a failover.
    fn refresh_if_stuck(&self) -> Option<Effect> {
        (!self.operation.is_read_only() && self.other_regions == 0).then_some(Effect::RefreshAccount)
    }

    /// Retries in another region at once; when all were tried, in all of them again after a wait.
    fn retry_in_next_region(&self, state: RetryState, reason: &'static str) -> Decision {
        if self.other_regions > 0 {
            return Decision::retry(Duration::ZERO, state.after_region(self.region), reason);
        }
        let rounds = state.count(RetryCause::AllRegionsTried);
        let delay = backoff(rounds, ALL_REGIONS_WAIT, ALL_REGIONS_WAIT_MAX, self.random);
        Decision::retry(delay, state.after_all_regions(), reason)
    }
}
