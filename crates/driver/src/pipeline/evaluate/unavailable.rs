//! 503, 429/3092 and 410 of no known sub-status: the partition cannot be served in this region.
//!
//! The service rejected the request, so nothing was done and writes may be repeated. The circuit breaker of the
//! partition in this region counts a failure; the operation goes to another region that may serve it.

use super::super::decision::{Decision, GiveUpReason};
use super::super::retry_state::RetryCause;
use super::Situation;

pub(super) fn evaluate(situation: &Situation<'_>) -> Decision {
    let reason = "the partition cannot be served here";
    let state = situation.state;
    let decision = if state.count(RetryCause::Failover) >= situation.policy.failover_retries_max {
        Decision::give_up(GiveUpReason::ServiceError, reason)
    } else {
        situation.retry_in_next_region(state.counted(RetryCause::Failover), reason)
    };
    decision.with_some(situation.partition_failed()).with_some(situation.refresh_if_stuck())
}
