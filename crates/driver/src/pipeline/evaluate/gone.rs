//! 410: the partition is no longer where the cache says.
//!
//! After a split, a merge or a move the partition ranges are read again and the operation is sent to its new
//! partition: at once, then with backoff. A request for one physical partition by id cannot be repeated, because
//! that partition no longer exists: the caller divides its work anew. Any other 410 speaks against the partition
//! in this region, as 503 does.

use std::time::Duration;

use protocol::status::SubStatus;

use super::super::decision::{Decision, Effect, GiveUpReason};
use super::super::retry_state::{RetryCause, backoff};
use super::{Situation, unavailable};
use crate::operation::Scope;

/// Retries with metadata that was read again. A split takes a while to complete.
const RETRIES_MAX: u32 = 8;
const WAIT: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);

pub(super) fn evaluate(sub_status: SubStatus, situation: &Situation<'_>) -> Decision {
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
    let retries = situation.state.count(RetryCause::StaleMetadata);
    let by_id = matches!(situation.operation.scope(), Scope::Partition(_));
    if retries >= RETRIES_MAX || by_id {
        return Decision::give_up(GiveUpReason::ServiceError, reason).with_some(refresh);
    }
    let delay = match retries {
        0 => Duration::ZERO,
        retries => backoff(retries - 1, WAIT, WAIT_MAX, situation.random),
    };
    let next = situation.state.counted(RetryCause::StaleMetadata);
    Decision::retry(delay, next, reason).with_some(refresh)
}
