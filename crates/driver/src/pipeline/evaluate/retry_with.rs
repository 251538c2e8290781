//! 449: a concurrent write was in progress, and this one was not done. It is retried in the same region after a
//! short wait.

use std::time::Duration;

use super::super::decision::{Decision, GiveUpReason};
use super::super::retry_state::{RetryCause, backoff};
use super::Situation;

const WAIT: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(1);

pub(super) fn evaluate(situation: &Situation<'_>) -> Decision {
    let reason = "a concurrent write was in progress";
    let retries = situation.state.count(RetryCause::RetryWith);
    if retries >= situation.policy.conflict_retries_max {
        return Decision::give_up(GiveUpReason::ServiceError, reason);
    }
    let delay = backoff(retries, WAIT, WAIT_MAX, situation.random);
    Decision::retry(delay, situation.state.counted(RetryCause::RetryWith), reason)
}
