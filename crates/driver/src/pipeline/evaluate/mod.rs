//! What an answer means: pure, one file per family of answers.
//!
//! In: the outcome of an attempt and the [`Situation`] it was made in. Out: a [`Verdict`], which is a step and
//! the effects that go with it. Nothing here sends, sleeps, locks or reads a clock; chance is an argument. The
//! whole of it is the table in `docs/retries.md`, which a test keeps equal to what the functions do.

mod gone;
mod retry_with;
mod server_error;
mod session_unavailable;
mod stale_container;
mod unavailable;
mod unreachable;
mod write_forbidden;

#[cfg(test)]
mod tests;

use crate::gateway::GatewayOutcome;
use crate::transport::TransportResponse;
use perihelion_http::exchange::Sent;
use std::time::Duration;

use protocol::status::{Status, SubStatus};

use super::attempts::{Attempts, backoff};
use super::step::{Access, Effect, Step, Verdict, Why};
use crate::operation::Operation;
use crate::options::RetryPolicy;
use crate::routing::{PartitionId, PartitionRegion, Region};

/// The first wait after all regions were tried, or where there is only one.
const ROUND_WAIT: Duration = Duration::from_millis(100);
/// The longest.
const ROUND_WAIT_MAX: Duration = Duration::from_secs(1);

/// What an attempt was made in: everything a decision may depend on besides the outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Situation<'a> {
    /// What is wanted.
    pub(crate) operation: &'a Operation,
    /// Where the attempt went.
    pub(crate) region: &'a Region,
    /// The region that has every write, if there is one such region and it is another.
    pub(crate) hub_is_elsewhere: bool,
    /// The partition it was about, when that is known.
    pub(crate) partition: Option<&'a PartitionId>,
    /// How many regions could still be turned to.
    pub(crate) others: usize,
    /// Whether a single partition may move its writes to another region.
    pub(crate) partition_failover: bool,
    /// What has been tried before this attempt.
    pub(crate) attempts: &'a Attempts,
    /// How often to try.
    pub(crate) policy: &'a RetryPolicy,
    /// A value in `0.0..1.0`, for waits.
    pub(crate) draw: f64,
}

/// Decides what follows an attempt.
pub(crate) fn evaluate(outcome: &GatewayOutcome, situation: &Situation<'_>) -> Verdict {
    match outcome {
        GatewayOutcome::Success(_) => Verdict { step: Step::Finish, reason: "done", effects: Vec::new() },
        GatewayOutcome::ServiceError(answer) => evaluate_answer(answer, situation),
        GatewayOutcome::NoResponse { error, sent } => unreachable::evaluate(error, *sent, situation),
        GatewayOutcome::DeadlineExceeded { sent } => past_deadline(*sent, situation),
    }
}

fn evaluate_answer(answer: &TransportResponse, situation: &Situation<'_>) -> Verdict {
    match (answer.status, answer.sub_status) {
        (Status::FORBIDDEN, SubStatus::WRITE_FORBIDDEN | SubStatus::DATABASE_ACCOUNT_NOT_FOUND) => {
            write_forbidden::evaluate(answer.sub_status, situation)
        }
        (Status::NOT_FOUND, SubStatus::READ_SESSION_NOT_AVAILABLE) => {
            session_unavailable::evaluate(situation)
        }
        (Status::NOT_FOUND, SubStatus::COLLECTION_CREATE_IN_PROGRESS) => {
            stale_container::not_ready(situation)
        }
        (Status::NOT_FOUND, SubStatus::OWNER_RESOURCE_NOT_FOUND)
        | (Status::BAD_REQUEST, SubStatus::COLLECTION_RID_MISMATCH) => {
            stale_container::evaluate(answer, situation)
        }
        (Status::GONE, sub_status) => gone::evaluate(sub_status, situation),
        (Status::SERVICE_UNAVAILABLE, _)
        | (Status::TOO_MANY_REQUESTS, SubStatus::SYSTEM_RESOURCE_UNAVAILABLE) => {
            unavailable::evaluate(situation)
        }
        (Status::INTERNAL_SERVER_ERROR | Status::REQUEST_TIMEOUT, _) => server_error::evaluate(situation),
        (Status::RETRY_WITH, _) => retry_with::evaluate(situation),
        (status, _) if situation.attempts.maybe_applied && situation.operation.may_have_caused(status) => {
            Verdict::give_up(Why::Undecided, "an earlier attempt may have caused it")
        }
        _ => Verdict::give_up(Why::Answer, "the answer is final"),
    }
}

fn past_deadline(sent: Sent, situation: &Situation<'_>) -> Verdict {
    let undecided = situation.attempts.maybe_applied || sent != Sent::NotSent;
    let why = if undecided && !situation.operation.is_read_only() { Why::Undecided } else { Why::Deadline };
    Verdict::give_up(why, "the deadline passed")
}

impl Situation<'_> {
    /// The partition in the region of the attempt.
    fn partition_here(&self) -> Option<PartitionRegion> {
        let partition = self.partition?.clone();
        Some(PartitionRegion { partition, region: self.region.clone() })
    }

    /// The attempt speaks against the partition in this region.
    fn partition_failed(&self) -> Option<Effect> {
        let access = if self.operation.is_read_only() { Access::Read } else { Access::Write };
        Some(Effect::PartitionFailed(self.partition_here()?, access))
    }

    /// Writes that have nowhere else to go wait for a failover, so the account is asked.
    fn refresh_if_stuck(&self) -> Option<Effect> {
        (!self.operation.is_read_only() && self.others == 0).then_some(Effect::RefreshAccount)
    }

    /// In another region at once; when none is left, in all of them again after a wait.
    fn elsewhere(&self, attempts: Attempts, reason: &'static str) -> Verdict {
        if self.others > 0 {
            return Verdict::again(Duration::ZERO, attempts.leave(self.region), reason);
        }
        let delay = backoff(attempts.rounds, ROUND_WAIT, ROUND_WAIT_MAX, self.draw);
        Verdict::again(delay, attempts.next_round(), reason)
    }
}
