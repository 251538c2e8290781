//! 400/1024, 404/1003 and 404/1013: the cached container is out of date, or the container is still being created.

use std::time::Duration;

use protocol::status::Status;

use super::super::decision::{Decision, Effect, GiveUpReason};
use super::super::retry_state::{RetryCause, backoff};
use super::Situation;
use crate::transport::TransportResponse;

/// Retries while a container is being created.
const NOT_READY_MAX: u32 = 8;
const WAIT: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The container was created again under the same name, or is gone: it is looked up again, and the operation is
/// retried once if that can help.
pub(super) fn evaluate(response: &TransportResponse, situation: &Situation<'_>) -> Decision {
    let forget = situation.operation.target().container_name().cloned().map(Effect::ForgetContainer);
    let was_recreated = response.status == Status::BAD_REQUEST;
    let state = situation.state;
    if was_recreated && state.count(RetryCause::StaleMetadata) == 0 {
        let next = state.counted(RetryCause::StaleMetadata);
        return Decision::retry(Duration::ZERO, next, "the container is another one").with_some(forget);
    }
    Decision::give_up(GiveUpReason::ServiceError, "the container is gone").with_some(forget)
}

/// The container is still being created: the operation is retried with backoff.
pub(super) fn not_ready(situation: &Situation<'_>) -> Decision {
    let reason = "the container is being created";
    let retries = situation.state.count(RetryCause::StaleMetadata);
    if retries >= NOT_READY_MAX {
        return Decision::give_up(GiveUpReason::ServiceError, reason);
    }
    let delay = backoff(retries, WAIT, WAIT_MAX, situation.random);
    Decision::retry(delay, situation.state.counted(RetryCause::StaleMetadata), reason)
}
