//! 404/1002: this region has not replicated what the session has seen.
//!
//! Retrying in the same region does not help: the next attempt goes to another one. Where one region has every
//! write, that is the hub region; otherwise each of the others, one after another. There is a wait only after
//! all of them were tried.

use std::time::Duration;

use super::super::decision::{Decision, GiveUpReason};
use super::super::retry_state::RetryCause;
use super::Situation;

pub(super) fn evaluate(situation: &Situation<'_>) -> Decision {
    let reason = "the region is behind the session";
    let state = situation.state;
    if state.count(RetryCause::SessionNotAvailable) >= situation.policy.session_retries_max {
        return Decision::give_up(GiveUpReason::ServiceError, reason);
    }
    let counted = state.counted(RetryCause::SessionNotAvailable);
    if situation.hub_has_more && situation.other_regions > 0 {
        let mut next = counted.after_region(situation.region);
        next.prefer_hub = true;
        return Decision::retry(Duration::ZERO, next, reason);
    }
    situation.retry_in_next_region(counted, reason)
}
