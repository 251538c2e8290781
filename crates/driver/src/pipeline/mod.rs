//! The operation pipeline: attempts until one of them ends the operation.
//!
//! In: an operation and its settings. Out: one response or one error, before the deadline. [`execute`] is the
//! loop: locate the partition, make an [`attempt`], [`evaluate`] its outcome, [`record`] it, apply the effects,
//! and finish or continue. It holds no rules: where to send is `routing`, what a response means is [`evaluate`],
//! when to send a second attempt is `hedging`, and what it needs of the driver is [`PipelineContext`].

mod apply_effects;
mod attempt;
mod build_request;
mod context;
mod decision;
mod error_mapping;
mod evaluate;
mod location;
mod record;
mod retry_state;

#[cfg(test)]
mod tests;

use std::time::Instant;

pub(crate) use self::apply_effects::update_breaker;
pub(crate) use self::context::PipelineContext;
use self::decision::{Effect, Step};
pub(crate) use self::error_mapping::of_outcome as error_of;
pub(crate) use self::location::Location;
use self::retry_state::RetryState;
pub(crate) use self::retry_state::backoff;
use crate::diagnostics::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::operation::Operation;
use crate::options::OperationSettings;
use crate::response::Response;
use crate::routing::{AccountState, PartitionState, Region};
use crate::telemetry::events;

/// Carries out one operation that the caller began at `started`: attempt after attempt, until one succeeds or
/// nothing more can be tried.
pub(crate) async fn execute<C: PipelineContext>(
    context: &C,
    operation: &Operation,
    settings: &OperationSettings,
    started: Instant,
) -> Result<Response> {
    if operation.target().names_nothing() {
        let link = operation.target().link();
        let message = format!("an id of `{link}` is empty or made of dots, which no resource can have");
        return Err(Error::new(ErrorKind::BadRequest, message));
    }
    let deadline = started + settings.timeouts.end_to_end;
    let recorder = Recorder::new(operation.name(), started);
    let mut execution = Execution { context, operation, settings, deadline, recorder };
    let mut state = RetryState::default();
    let mut previous: Option<Region> = None;
    // Ends with a response, with a decision to give up, or when the next attempt would start after the deadline.
    loop {
        let location = match context.locate(operation, deadline).await {
            Ok(location) => location,
            Err(error) => return Err(execution.with_diagnostics(error)),
        };
        let account = context.account().snapshot();
        let partitions = context.partitions().snapshot();
        let view = AttemptView { account: &account, partitions: &partitions, location: location.as_ref() };
        let attempt = execution.attempt(&view, &state, previous.as_ref()).await;
        state.maybe_applied |= attempt.other_maybe_applied;
        let region = attempt.route.endpoint.region().clone();
        let decision = execution.evaluate(&attempt, &view, &state);
        let outcome = execution.record(attempt, &view, decision.reason);
        let now = context.clock().now();
        match decision.step {
            Step::Finish => {
                execution.apply_final(decision.effects, location.as_ref()).await;
                return execution.finish(outcome, &region, &view);
            }
            Step::GiveUp(reason) => {
                execution.apply_final(decision.effects, location.as_ref()).await;
                let error = error_mapping::given_up(reason, outcome, context.clock().time_of_day());
                return Err(execution.with_diagnostics(error));
            }
            Step::Retry { delay, .. } if now + delay >= deadline => {
                let undecided = state.maybe_applied && !operation.is_read_only();
                let error = error_mapping::out_of_time(outcome, undecided, context.clock().time_of_day());
                return Err(execution.with_diagnostics(error));
            }
            Step::Retry { delay, state: next } => {
                events::retrying(&region, decision.reason, delay);
                apply_effects::apply(context, decision.effects, location.as_ref(), deadline).await;
                if !delay.is_zero() {
                    context.clock().sleep(delay).await;
                }
                state = next;
                previous = Some(region);
            }
        }
    }
}

/// One operation in progress: what stays the same between attempts, and what was recorded.
struct Execution<'a, C> {
    context: &'a C,
    operation: &'a Operation,
    settings: &'a OperationSettings,
    deadline: Instant,
    recorder: Recorder,
}

/// The snapshots that one attempt and its evaluation use.
#[derive(Clone, Copy)]
struct AttemptView<'a> {
    account: &'a AccountState,
    partitions: &'a PartitionState,
    location: Option<&'a Location>,
}

impl<C: PipelineContext> Execution<'_, C> {
    /// Applies the effects of the last attempt. The account's properties are not read again: no further attempt
    /// would use them, and the caller would wait for them.
    async fn apply_final(&self, mut effects: Vec<Effect>, location: Option<&Location>) {
        if !effects.is_empty() {
            effects.retain(|effect| *effect != Effect::RefreshAccount);
            apply_effects::apply(self.context, effects, location, self.deadline).await;
        }
    }
}
