//! The operation pipeline: attempts until one of them ends the operation.
//!
//! In: an operation and its settings. Out: one response or one error, before the deadline. [`execute`] is the
//! loop: locate the partition, make an [`attempt`], [`evaluate`] its outcome, [`record`] it, apply the effects,
//! and finish or continue. It holds no rules: where to send is `routing`, what a response means is [`evaluate`],
//! when to send a second attempt is `hedging`, what to do while a region is [`silence`], and what it needs of the
//! driver is [`PipelineContext`].

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
mod silence;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

pub(crate) use self::context::PipelineContext;
use self::decision::{Effect, Step};
pub(crate) use self::error_mapping::of_outcome as error_of;
pub(crate) use self::location::Location;
use self::retry_state::RetryState;
pub(crate) use self::retry_state::backoff;
use crate::clock::after;
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
    check(operation)?;
    let deadline = settings.timeouts.deadline_from(started);
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
        // What was learnt counts, whatever ends the operation.
        apply_effects::apply_now(context, &decision.effects, location.as_ref());
        match decision.step {
            Step::Finish => {
                execution.refresh_partitions(&decision.effects, location.as_ref()).await;
                return execution.finish(outcome, &region, &view);
            }
            Step::GiveUp(reason) => {
                execution.refresh_partitions(&decision.effects, location.as_ref()).await;
                let error = error_mapping::given_up(reason, outcome, context.clock().time_of_day());
                return Err(execution.with_diagnostics(error));
            }
            Step::Retry { delay, state: next } => {
                if !execution.is_too_late(delay) {
                    apply_effects::refresh(context, &decision.effects, location.as_ref(), deadline).await;
                }
                // Refreshing takes time as well.
                if execution.is_too_late(delay) {
                    let undecided = next.maybe_applied && !operation.is_read_only();
                    let error = error_mapping::out_of_time(outcome, undecided, context.clock().time_of_day());
                    return Err(execution.with_diagnostics(error));
                }
                events::retrying(&region, decision.reason, delay);
                if !delay.is_zero() {
                    context.clock().sleep(delay).await;
                }
                state = next;
                previous = Some(region);
            }
        }
    }
}

/// An error about an operation that cannot be sent as it is.
pub(crate) fn check(operation: &Operation) -> Result<()> {
    match operation.invalid_because() {
        None => Ok(()),
        Some(message) => Err(Error::new(ErrorKind::BadRequest, message).about(operation.target().link())),
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
    /// Whether an attempt after `delay` would start after the deadline.
    fn is_too_late(&self, delay: Duration) -> bool {
        after(self.context.clock().now(), delay) >= self.deadline
    }

    /// Reads partition ranges again after the last attempt, for the caller who divides its work anew. The account's
    /// properties are not: no further attempt would use them, and the caller would wait for them.
    async fn refresh_partitions(&self, effects: &[Effect], location: Option<&Location>) {
        let is_partitions = |effect: &&Effect| matches!(effect, Effect::RefreshPartitions(_));
        if let Some(effect) = effects.iter().find(is_partitions) {
            apply_effects::refresh(self.context, std::slice::from_ref(effect), location, self.deadline).await;
        }
    }
}
