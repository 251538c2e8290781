//! 404/1002: this region has not seen what the session has.
//!
//! Asking the same region again helps nobody: the next attempt leaves it. Where one region has every write,
//! that one is asked; otherwise each of the others in turn. Only after all of them is there a wait.

use std::time::Duration;

use super::super::attempts::Attempts;
use super::super::step::{Verdict, Why};
use super::Situation;

pub(super) fn evaluate(situation: &Situation<'_>) -> Verdict {
    let reason = "the region is behind the session";
    let attempts = situation.attempts;
    if attempts.sessions >= situation.policy.session_retries_max {
        return Verdict::give_up(Why::Answer, reason);
    }
    let counted = Attempts { sessions: attempts.sessions + 1, ..attempts.clone() };
    if situation.hub_is_elsewhere && situation.others > 0 {
        let next = Attempts { from_hub: true, ..counted.leave(situation.region) };
        return Verdict::again(Duration::ZERO, next, reason);
    }
    situation.elsewhere(counted, reason)
}
