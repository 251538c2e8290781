//! 400/1024, 404/1003 and 404/1013: what is known of the container is out of date, or it is not there yet.

use std::time::Duration;

use protocol::status::Status;

use super::super::attempts::{Attempts, backoff};
use super::super::step::{Effect, Verdict, Why};
use super::Situation;

/// Tries while a container is being made.
pub(super) const NOT_READY_MAX: u32 = 8;
const WAIT: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The container was made again under the same name, or is gone: it is looked up anew, and the operation is
/// sent once more if that can help.
pub(super) fn evaluate(answer: &crate::transport::TransportResponse, situation: &Situation<'_>) -> Verdict {
    let forget = situation.operation.target().container_name().cloned().map(Effect::ForgetContainer);
    let is_another = answer.status == Status::BAD_REQUEST;
    let attempts = situation.attempts;
    if is_another && attempts.maps == 0 {
        let next = Attempts { maps: 1, ..attempts.clone() };
        return Verdict::again(Duration::ZERO, next, "the container is another one").with_some(forget);
    }
    Verdict::give_up(Why::Answer, "the container is gone").with_some(forget)
}

/// The container is still being made: wait for it.
pub(super) fn not_ready(situation: &Situation<'_>) -> Verdict {
    let reason = "the container is being made";
    let attempts = situation.attempts;
    if attempts.maps >= NOT_READY_MAX {
        return Verdict::give_up(Why::Answer, reason);
    }
    let delay = backoff(attempts.maps, WAIT, WAIT_MAX, situation.draw);
    Verdict::again(delay, Attempts { maps: attempts.maps + 1, ..attempts.clone() }, reason)
}
