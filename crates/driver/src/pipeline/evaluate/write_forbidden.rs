//! 403/3 and 403/1008: the map of regions is out of date.
//!
//! The region says that it does not take writes, or that the account is not there. The account is asked
//! where to go, and the operation goes there: at once the first time, then after waits that double. Both
//! answers draw on one budget of waiting. Nothing was done, so writes may be repeated.

use std::time::Duration;

use protocol::status::SubStatus;

use super::super::attempts::{Attempts, backoff};
use super::super::step::{Effect, Verdict, Why};
use super::Situation;
use crate::routing::Unavailable;

const WAIT: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(1);

pub(super) fn evaluate(sub_status: SubStatus, situation: &Situation<'_>) -> Verdict {
    let attempts = situation.attempts;
    let is_writing = sub_status == SubStatus::WRITE_FORBIDDEN;
    let reason =
        if is_writing { "the region does not take writes" } else { "the account is not in the region" };
    let delay = match attempts.forbidden {
        0 => Duration::ZERO,
        tried => backoff(tried - 1, WAIT, WAIT_MAX, situation.draw),
    };
    let waited = attempts.forbidden_waited + delay;
    // The other region of a partition that moved is told by its answer, not by the account's map.
    let moved = situation.partition_here().filter(|_| is_writing && situation.partition_failover);
    let verdict = if waited > situation.policy.forbidden_wait_max {
        Verdict::give_up(Why::Answer, reason)
    } else {
        let counted =
            Attempts { forbidden: attempts.forbidden + 1, forbidden_waited: waited, ..attempts.clone() };
        let next = if situation.others > 0 { counted.leave(situation.region) } else { counted.next_round() };
        Verdict::again(delay, next, reason)
    };
    let mark = match (moved, is_writing) {
        (Some(key), _) => Effect::PartitionTripped(key),
        (None, true) => Effect::MarkUnavailable(situation.region.clone(), Unavailable::Writes),
        (None, false) => Effect::MarkUnavailable(situation.region.clone(), Unavailable::All),
    };
    verdict.with(mark).with(Effect::RefreshAccount)
}
