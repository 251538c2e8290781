//! What follows an attempt. Pure: waits are returned, not done.
//!
//! Everything this client sends may be sent twice: upserts, reads, and creates whose conflict is as
//! good as success.

use std::time::Duration;

use protocol::status::Status;

/// How long one request may wait in all before it fails.
pub(super) const WAITING_MAX: Duration = Duration::from_secs(60);
/// How often a request is sent that fails for reasons other than being too many.
const ATTEMPTS_MAX: u32 = 5;
const FIRST_DELAY: Duration = Duration::from_millis(100);

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// With an answer.
    Answered { status: Status, retry_after: Option<Duration> },
    /// Without one: no connection, a broken one, or none in time.
    Lost,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Take what there is.
    Finish,
    /// Try again after this long.
    RetryAfter(Duration),
}

/// Decides after the attempt with number `attempt` (the first is 1), of a request that has `waited`.
pub(super) fn next_step(outcome: Outcome, attempt: u32, waited: Duration) -> Step {
    let backoff = FIRST_DELAY * 2u32.saturating_pow(attempt.saturating_sub(1).min(6));
    let delay = match outcome {
        // The account says how long; only the budget ends this.
        Outcome::Answered { status: Status(429 | 449), retry_after } => retry_after.unwrap_or(backoff),
        Outcome::Answered { status: Status(408 | 410 | 500 | 503), .. } | Outcome::Lost
            if attempt < ATTEMPTS_MAX =>
        {
            backoff
        }
        Outcome::Answered { .. } | Outcome::Lost => return Step::Finish,
    };
    if waited + delay > WAITING_MAX { Step::Finish } else { Step::RetryAfter(delay) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, retry_after_ms: Option<u64>) -> Outcome {
        Outcome::Answered { status: Status(status), retry_after: retry_after_ms.map(Duration::from_millis) }
    }

    #[test]
    fn what_may_pass_is_tried_again_within_the_budget() {
        let after = |ms| Step::RetryAfter(Duration::from_millis(ms));
        for (outcome, attempt, waited_ms, expected) in [
            (answered(200, None), 1, 0, Step::Finish),
            (answered(400, None), 1, 0, Step::Finish),
            (answered(409, None), 1, 0, Step::Finish),
            (answered(429, Some(17)), 1, 0, after(17)),
            (answered(429, Some(17)), 500, 30_000, after(17)),
            (answered(429, Some(17)), 2, 59_990, Step::Finish),
            (answered(429, None), 2, 0, after(200)),
            (answered(429, None), u32::MAX, 0, after(6_400)),
            (answered(503, None), 1, 0, after(100)),
            (answered(503, None), 5, 0, Step::Finish),
            (Outcome::Lost, 1, 0, after(100)),
            (Outcome::Lost, 4, 0, after(800)),
            (Outcome::Lost, 5, 0, Step::Finish),
        ] {
            let step = next_step(outcome, attempt, Duration::from_millis(waited_ms));
            assert_eq!(step, expected, "{outcome:?} {attempt} {waited_ms}");
        }
    }
}
