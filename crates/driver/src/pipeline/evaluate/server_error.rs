//! 500 and 408: the service began and did not finish.
//!
//! A read goes to another region. A write may have been done: it is not repeated, and the caller is told that
//! nobody knows.

use super::super::attempts::Attempts;
use super::super::step::{Verdict, Why};
use super::Situation;

pub(super) fn evaluate(situation: &Situation<'_>) -> Verdict {
    let reason = "the service failed while serving it";
    let (operation, attempts) = (situation.operation, situation.attempts);
    let verdict = if !operation.is_idempotent() {
        Verdict::give_up(Why::Undecided, reason)
    } else if attempts.failovers >= situation.policy.failover_retries_max {
        Verdict::give_up(if operation.is_read_only() { Why::Answer } else { Why::Undecided }, reason)
    } else {
        let maybe_applied = attempts.maybe_applied || !operation.is_read_only();
        let next = Attempts { failovers: attempts.failovers + 1, maybe_applied, ..attempts.clone() };
        situation.elsewhere(next, reason)
    };
    verdict.with_some(situation.partition_failed())
}
