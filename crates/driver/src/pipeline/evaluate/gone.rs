//! 410: the partition is no longer where it was.
//!
//! After a split, a merge or a move the ranges are listed again and the operation finds its new partition: at
//! once, then after waits. A request for one physical partition by number cannot be repeated, because that
//! partition is gone for good: whoever asked for it divides the work anew. Any other 410 speaks against the
//! partition in this region, as 503 does.

use std::time::Duration;

use protocol::status::SubStatus;

use super::super::attempts::{Attempts, backoff};
use super::super::step::{Effect, Verdict, Why};
use super::{Situation, unavailable};
use crate::operation::Scope;

/// Tries with a map that was read again. A split takes a while to complete.
pub(super) const MAPS_MAX: u32 = 8;
const WAIT: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);

pub(super) fn evaluate(sub_status: SubStatus, situation: &Situation<'_>) -> Verdict {
    let container = situation.operation.target().container_name();
    let (reason, refresh) = match sub_status {
        SubStatus::NAME_CACHE_STALE => {
            ("the name leads to another container", container.cloned().map(Effect::ForgetContainer))
        }
        SubStatus::PARTITION_KEY_RANGE_GONE
        | SubStatus::COMPLETING_SPLIT
        | SubStatus::COMPLETING_PARTITION_MIGRATION => {
            ("the partition was split or moved", container.cloned().map(Effect::RefreshPartitions))
        }
        _ => return unavailable::evaluate(situation),
    };
    let attempts = situation.attempts;
    let by_number = matches!(situation.operation.scope(), Scope::Partition(_));
    if attempts.maps >= MAPS_MAX || by_number {
        return Verdict::give_up(Why::Answer, reason).with_some(refresh);
    }
    let delay = match attempts.maps {
        0 => Duration::ZERO,
        tried => backoff(tried - 1, WAIT, WAIT_MAX, situation.draw),
    };
    let next = Attempts { maps: attempts.maps + 1, ..attempts.clone() };
    Verdict::again(delay, next, reason).with_some(refresh)
}
