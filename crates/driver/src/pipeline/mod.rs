//! The loop over regions: route, build, send, evaluate, apply.
//!
//! In: an operation and its settings. Out: one answer, before the deadline. The loop holds no rules: where to
//! send is `routing`, what an answer means is [`evaluate`], when to race a second region is `hedging`, and what
//! it needs of the driver around it is [`Surroundings`].

mod apply_effects;
mod attempts;
mod build_request;
mod evaluate;
mod failure;
mod location;
mod step;
mod surroundings;

#[cfg(test)]
mod tests;

use crate::diagnostics::{ExecutionContext, SendRecord};
use crate::gateway::{GatewayOutcome, GatewayResult};
use crate::transport::TransportResponse;
use std::time::Instant;

use protocol::headers as names;
use protocol::status::{Status, SubStatus};

pub(crate) use self::attempts::backoff;
pub(crate) use self::failure::of_outcome as error_of;
pub(crate) use self::location::{Location, Placed, needs_ranges, place};
pub(crate) use self::surroundings::Surroundings;

use self::attempts::Attempts;
use self::build_request::Parts;
use self::evaluate::{Situation, evaluate};
use self::step::{Effect, Step, Verdict};
use crate::diagnostics::Recorder;
use crate::error::{Error, ErrorKind, Result};
use crate::hedging::winner::{Choice, Lane, Side, choose, is_final};
use crate::hedging::{self, Race, eligibility::may_be_raced, threshold::threshold};
use crate::operation::{Operation, ResponseHeaders};
use crate::options::OperationSettings;
use crate::response::Response;
use crate::routing::{self, AccountState, Demand, PartitionRegion, PartitionState, Region, Route};

/// Carries out one operation that the caller began at `started`: attempt after attempt, until an answer counts
/// or nothing more can be tried.
pub(crate) async fn execute<S: Surroundings>(
    surroundings: &S,
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
    let recorder = Recorder::new(operation.kind().name(), started);
    let mut execution = Execution { surroundings, operation, settings, deadline, recorder };
    let mut attempts = Attempts::default();
    let mut previous: Option<Region> = None;
    loop {
        let location = match surroundings.locate(operation, deadline).await {
            Ok(location) => location,
            Err(error) => return Err(execution.told(error)),
        };
        let account = surroundings.account().snapshot();
        let partitions = surroundings.partitions().snapshot();
        let view = View { account: &account, partitions: &partitions, location: location.as_ref() };
        let attempt = execution.attempt(&view, &attempts, previous.as_ref()).await;
        if attempt.other_maybe_applied {
            attempts.maybe_applied = true;
        }
        let region = attempt.route.endpoint.region().clone();
        let verdict = execution.evaluate(&attempt, &view, &attempts);
        let outcome = execution.record(attempt, &view, verdict.reason);
        let now = surroundings.clock().now();
        match verdict.step {
            Step::Finish => {
                execution.apply_without_asking(verdict.effects, location.as_ref()).await;
                return execution.finish(outcome, &region, &view);
            }
            Step::GiveUp(why) => {
                execution.apply_without_asking(verdict.effects, location.as_ref()).await;
                return Err(execution.told(failure::error(why, outcome, surroundings.clock().time_of_day())));
            }
            Step::Again { delay, .. } if now + delay >= deadline => {
                let undecided = attempts.maybe_applied && !operation.is_read_only();
                return Err(execution.told(failure::out_of_time(
                    outcome,
                    undecided,
                    surroundings.clock().time_of_day(),
                )));
            }
            Step::Again { delay, attempts: next } => {
                apply_effects::apply(surroundings, verdict.effects, location.as_ref(), deadline).await;
                if !delay.is_zero() {
                    surroundings.clock().sleep(delay).await;
                }
                attempts = next;
                previous = Some(region);
            }
        }
    }
}

/// One operation under way: what stays the same between attempts, and what was recorded.
struct Execution<'a, S> {
    surroundings: &'a S,
    operation: &'a Operation,
    settings: &'a OperationSettings,
    deadline: Instant,
    recorder: Recorder,
}

/// What is known during one attempt.
#[derive(Clone, Copy)]
struct View<'a> {
    account: &'a AccountState,
    partitions: &'a PartitionState,
    location: Option<&'a Location>,
}

/// What one attempt, or a race of two, came to.
struct Attempted {
    context: ExecutionContext,
    route: Route,
    result: GatewayResult,
    /// The other one of a race.
    other: Option<Other>,
    /// Whether the other one may have been carried out, unlike what the result says.
    other_maybe_applied: bool,
}

struct Other {
    context: ExecutionContext,
    route: Route,
    lane: Lane,
    started: Instant,
}

impl<'a, S: Surroundings> Execution<'a, S> {
    fn demand<'b>(&self, view: &View<'b>, attempts: &'b Attempts) -> Demand<'b>
    where
        'a: 'b,
    {
        Demand {
            is_read: self.operation.is_read_only(),
            partition: view.location.and_then(|location| location.partition.as_ref()),
            excluded: &self.settings.regions.excluded,
            left: &attempts.left,
            from_hub: attempts.from_hub,
        }
    }

    /// Sends one attempt to the best region, and a second one beside it if that is slow and may be raced.
    async fn attempt(&self, view: &View<'_>, attempts: &Attempts, previous: Option<&Region>) -> Attempted {
        let (operation, clock) = (self.operation, self.surroundings.clock());
        let demand = self.demand(view, attempts);
        let route = routing::resolve(&demand, view.account, view.partitions);
        let context = match previous {
            None => ExecutionContext::Initial,
            Some(previous) if previous == route.endpoint.region() => ExecutionContext::Retry,
            Some(_) => ExecutionContext::Failover,
        };
        let parts = Parts {
            operation,
            settings: self.settings,
            location: view.location,
            account: view.account,
            deadline: self.deadline,
        };
        let started = clock.now();
        let first = self.surroundings.send(parts.request(&route.endpoint, context), self.settings);
        let hedging = &self.settings.hedging;
        // Only the first attempt is raced: later ones already know where not to go.
        let second = (previous.is_none() && may_be_raced(operation, hedging, view.account))
            .then(|| routing::resolve_second(&route, &demand, view.account, view.partitions))
            .flatten();
        let Some(second) = second else {
            let result = first.await;
            self.measure(&route, started, &result);
            return Attempted { context, route, result, other: None, other_maybe_applied: false };
        };
        let latencies = route.endpoint.latencies();
        let after = threshold(hedging.threshold, latencies.p99(operation.kind(), started));
        let start = || {
            let permit = self.surroundings.hedges().take(hedging.concurrent_max.get())?;
            let request = parts.request(&second.endpoint, ExecutionContext::Hedging);
            Some((permit, self.surroundings.send(request, self.settings)))
        };
        let race = hedging::race(clock, after, first, start, |outcome| is_final(operation, outcome)).await;
        self.settle(race, (context, route, started), second)
    }

    /// Takes the result of a race that counts.
    fn settle(
        &self,
        race: Race,
        first: (ExecutionContext, Route, Instant),
        second_route: Route,
    ) -> Attempted {
        let (context, route, started) = first;
        let was_denied = race.was_denied;
        let Choice { side, other_maybe_applied } = choose(self.operation, &race.first, &race.second);
        let second_started = race.second_started.unwrap_or(started);
        let first = Other { context, route, lane: race.first, started };
        let second = Other {
            context: ExecutionContext::Hedging,
            route: second_route,
            lane: race.second,
            started: second_started,
        };
        let (counts, other) = match side {
            Side::First => (first, second),
            Side::Second => (second, first),
        };
        let Lane::Done(result) = counts.lane else { unreachable!("one of two attempts has ended") };
        // What was slow and could not be raced says how slow it is, not how fast it should be.
        if !was_denied {
            self.measure(&counts.route, counts.started, &result);
        }
        let other = (!matches!(other.lane, Lane::Unused)).then_some(other);
        Attempted { context: counts.context, route: counts.route, result, other, other_maybe_applied }
    }

    /// Remembers how fast a region was.
    fn measure(&self, route: &Route, started: Instant, result: &GatewayResult) {
        if let GatewayOutcome::Success(_) = result.outcome {
            let now = self.surroundings.clock().now();
            let took = now.saturating_duration_since(started);
            route.endpoint.latencies().record(self.operation.kind(), took, now);
        }
    }

    fn evaluate(&self, attempt: &Attempted, view: &View<'_>, attempts: &Attempts) -> Verdict {
        let mut verdict = self.judge(&attempt.route, &attempt.result.outcome, view, attempts);
        // The other attempt of a race says something about its region, too.
        if let Some(Other { route, lane: Lane::Done(result), .. }) = &attempt.other {
            verdict.effects.extend(self.judge(route, &result.outcome, view, attempts).effects);
        }
        verdict
    }

    fn judge(
        &self,
        route: &Route,
        outcome: &GatewayOutcome,
        view: &View<'_>,
        attempts: &Attempts,
    ) -> Verdict {
        if let GatewayOutcome::Success(_) = outcome {
            return Verdict { step: Step::Finish, reason: "done", effects: Vec::new() };
        }
        let region = route.endpoint.region();
        let demand = self.demand(view, attempts);
        let hub = view.account.hub().region();
        let situation = Situation {
            operation: self.operation,
            region,
            hub_is_elsewhere: !view.account.is_multi_write() && hub != region && !attempts.left.contains(hub),
            partition: demand.partition,
            others: routing::others(region, &demand, view.account),
            partition_failover: view.account.has_partition_failover() && !view.account.is_multi_write(),
            attempts,
            policy: &self.settings.retry,
            draw: self.surroundings.draw(),
        };
        evaluate(outcome, &situation)
    }

    /// Carries out what an attempt taught, when there is no other attempt to ask the account for.
    async fn apply_without_asking(&self, mut effects: Vec<Effect>, location: Option<&Location>) {
        if !effects.is_empty() {
            effects.retain(|effect| *effect != Effect::RefreshAccount);
            apply_effects::apply(self.surroundings, effects, location, self.deadline).await;
        }
    }

    /// Keeps what happened, and gives back what the attempt came to.
    fn record(&mut self, attempt: Attempted, view: &View<'_>, reason: &'static str) -> GatewayOutcome {
        let range = view.location.and_then(Location::range);
        if let Some(Other { context, route, lane, started }) = attempt.other {
            match lane {
                Lane::Done(result) => {
                    for record in sends(result) {
                        self.recorder.sent(
                            context,
                            &route.endpoint,
                            range,
                            record,
                            "the other attempt counts",
                        );
                    }
                }
                Lane::Abandoned => {
                    let now = self.surroundings.clock().now();
                    self.recorder.abandoned(context, &route.endpoint, range, started, now);
                }
                Lane::Unused => {}
            }
        }
        let GatewayResult { outcome, last, earlier } = attempt.result;
        for record in earlier {
            self.recorder.sent(
                attempt.context,
                &attempt.route.endpoint,
                range,
                record,
                "again in the same region",
            );
        }
        if let Some(record) = last {
            self.recorder.sent(attempt.context, &attempt.route.endpoint, range, record, reason);
        }
        if let (Some(location), Some(answer)) = (view.location, learns_from(&outcome)) {
            learn(location, &answer.headers);
        }
        outcome
    }

    /// The answer, after everybody has learnt from it.
    fn finish(self, outcome: GatewayOutcome, region: &Region, view: &View<'_>) -> Result<Response> {
        let GatewayOutcome::Success(answer) = outcome else { unreachable!("only a success is finished") };
        let is_read = self.operation.is_read_only();
        if view.account.is_unavailable(region, is_read) {
            self.surroundings.account().update(|account| account.mark_available(region));
        }
        if !view.partitions.is_empty()
            && let Some(partition) = view.location.and_then(|location| location.partition.clone())
        {
            let key = PartitionRegion { partition, region: region.clone() };
            if view.partitions.remembers(&key) {
                self.surroundings.partitions().update(|partitions| partitions.record_success(&key));
            }
        }
        let now = self.surroundings.clock().now();
        Ok(Response::new(answer.status, answer.headers, answer.body, self.recorder.finish(now)))
    }

    /// The same error, with what was tried.
    fn told(self, error: Error) -> Error {
        let now = self.surroundings.clock().now();
        error.about(self.operation.target().link()).with_diagnostics(self.recorder.finish(now))
    }
}

/// The answer, if it saw the partition as it is: a success, or a refusal for what is or is not there.
fn learns_from(outcome: &GatewayOutcome) -> Option<&TransportResponse> {
    match outcome {
        GatewayOutcome::Success(answer) => Some(answer),
        GatewayOutcome::ServiceError(answer) => match (answer.status, answer.sub_status) {
            (Status::CONFLICT | Status::PRECONDITION_FAILED, _) | (Status::NOT_FOUND, SubStatus::NONE) => {
                Some(answer)
            }
            _ => None,
        },
        GatewayOutcome::NoResponse { .. } | GatewayOutcome::DeadlineExceeded { .. } => None,
    }
}

/// Remembers what an answer has seen.
fn learn(location: &Location, headers: &ResponseHeaders) {
    if let Some(token) = headers.get(names::SESSION_TOKEN) {
        location.container.session().record(token);
    }
}

fn sends(result: GatewayResult) -> impl Iterator<Item = SendRecord> {
    result.earlier.into_iter().chain(result.last)
}
