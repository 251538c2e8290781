//! 449: two writes met, and this one was not done. It is sent again, here, after a short wait.

use std::time::Duration;

use super::super::attempts::{Attempts, backoff};
use super::super::step::{Verdict, Why};
use super::Situation;

const WAIT: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(1);

pub(super) fn evaluate(situation: &Situation<'_>) -> Verdict {
    let reason = "two writes met";
    let attempts = situation.attempts;
    if attempts.conflicts >= situation.policy.conflict_retries_max {
        return Verdict::give_up(Why::Answer, reason);
    }
    let delay = backoff(attempts.conflicts, WAIT, WAIT_MAX, situation.draw);
    let next = Attempts { conflicts: attempts.conflicts + 1, ..attempts.clone() };
    Verdict::again(delay, next, reason)
}
