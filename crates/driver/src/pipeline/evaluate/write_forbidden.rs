//! 403/3 and 403/1008: the cached regions of the account are out of date.
//!
//! The region says that it does not take writes, or that the account is not there. The account's properties are
//! read again, and the operation is retried accordingly: at once the first time, then with backoff. Both
//! responses share one limit on the time waited. Nothing was done, so writes may be repeated.

use std::time::Duration;

use protocol::status::SubStatus;

use super::super::decision::{Decision, Effect, GiveUpReason};
use super::super::retry_state::{RetryCause, backoff};
use super::Situation;
use crate::routing::Unavailable;

const WAIT: Duration = Duration::from_millis(100);
const WAIT_MAX: Duration = Duration::from_secs(1);

pub(super) fn evaluate(sub_status: SubStatus, situation: &Situation<'_>) -> Decision {
    let state = situation.state;
    let is_write_forbidden = sub_status == SubStatus::WRITE_FORBIDDEN;
    let reason = if is_write_forbidden {
        "the region does not take writes"
    } else {
        "the account is not in the region"
    };
    let delay = match state.count(RetryCause::Forbidden) {
        0 => Duration::ZERO,
        retries => backoff(retries - 1, WAIT, WAIT_MAX, situation.random),
    };
    let waited = state.forbidden_waited + delay;
    // Where a partition moved its writes to shows in the responses of the regions, not in the account's list.
    let moved = situation.partition_here().filter(|_| is_write_forbidden && situation.partition_failover);
    let decision = if waited > situation.policy.forbidden_wait_max {
        Decision::give_up(GiveUpReason::ServiceError, reason)
    } else {
        let mut counted = state.counted(RetryCause::Forbidden);
        counted.forbidden_waited = waited;
        let next = if situation.other_regions > 0 {
            counted.after_region(situation.region)
        } else {
            counted.after_all_regions()
        };
        Decision::retry(delay, next, reason)
    };
    let mark = match (moved, is_write_forbidden) {
        (Some(key), _) => Effect::PartitionTripped(key),
        (None, true) => Effect::MarkUnavailable(situation.region.clone(), Unavailable::Writes),
        (None, false) => Effect::MarkUnavailable(situation.region.clone(), Unavailable::All),
    };
    decision.with(mark).with(Effect::RefreshAccount)
}
