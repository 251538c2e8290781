//! 503, 429/3092 and 410 of no known reason: this partition here is in trouble.
//!
//! The service refused, so nothing was done and writes may be repeated. The breaker of the partition in this
//! region counts it; the operation goes to another region that may serve it.

use super::super::attempts::Attempts;
use super::super::step::{Verdict, Why};
use super::Situation;

pub(super) fn evaluate(situation: &Situation<'_>) -> Verdict {
    let reason = "the partition cannot be served here";
    let attempts = situation.attempts;
    let verdict = if attempts.failovers >= situation.policy.failover_retries_max {
        Verdict::give_up(Why::Answer, reason)
    } else {
        situation.elsewhere(Attempts { failovers: attempts.failovers + 1, ..attempts.clone() }, reason)
    };
    verdict.with_some(situation.partition_failed()).with_some(situation.refresh_if_stuck())
}
