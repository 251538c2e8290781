//! 500 and 408: the service started the operation and did not finish it.
//!
//! A read goes to another region. A write may have been carried out: it is not repeated, and the caller gets
//! `Undecided`.

use super::super::decision::{Decision, GiveUpReason};
use super::super::retry_state::RetryCause;
use super::Situation;

pub(super) fn evaluate(situation: &Situation<'_>) -> Decision {
    let reason = "the service failed while serving it";
    let (operation, state) = (situation.operation, situation.state);
    let is_write = !operation.is_read_only();
    let decision = if !operation.is_idempotent() {
        Decision::give_up(GiveUpReason::Undecided, reason)
    } else if state.count(RetryCause::Failover) >= situation.policy.failover_retries_max {
        let error = if is_write { GiveUpReason::Undecided } else { GiveUpReason::ServiceError };
        Decision::give_up(error, reason)
    } else {
        let next = state.counted(RetryCause::Failover).maybe_applied_if(is_write);
        situation.retry_in_next_region(next, reason)
    };
    decision.with_some(situation.partition_failed())
}
