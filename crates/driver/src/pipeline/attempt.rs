//! One attempt: route, build the request, send it, and race a second region if the first is slow.

use std::pin::pin;
use std::time::Instant;

use super::build_request::RequestBuilder;
use super::context::PipelineContext;
use super::decision::{Decision, NoResponse};
use super::evaluate::{Situation, evaluate};
use super::retry_state::RetryState;
use super::silence::{AttemptGuard, SilencePolicy, is_long};
use super::{AttemptView, Execution};
use crate::diagnostics::ExecutionContext;
use crate::gateway::{AttemptProgress, GatewayOutcome, GatewayResult};
use crate::hedging::winner::{RaceAttempt, Side, Winner, choose, is_final};
use crate::hedging::{self, RaceResult, is_eligible, threshold};
use crate::routing::{self, Region, Route, RouteRequest};
use crate::telemetry::events;

/// The result of one attempt, or of a race of two.
pub(super) struct AttemptResult {
    pub(super) context: ExecutionContext,
    pub(super) route: Route,
    pub(super) started: Instant,
    pub(super) result: GatewayResult,
    /// The attempt of a race that does not count.
    pub(super) other: Option<RaceEntry>,
    /// Whether that one may have been carried out, unlike what the result says.
    pub(super) other_maybe_applied: bool,
}

/// One of the two attempts of a race.
pub(super) struct RaceEntry {
    pub(super) context: ExecutionContext,
    pub(super) route: Route,
    pub(super) attempt: RaceAttempt,
    pub(super) started: Instant,
}

impl<'a, C: PipelineContext> Execution<'a, C> {
    /// Sends one attempt to the best region, and a second one to another region if the first is slow and the
    /// operation may be hedged.
    pub(super) async fn attempt(
        &self,
        view: &AttemptView<'_>,
        state: &RetryState,
        previous: Option<&Region>,
    ) -> AttemptResult {
        let (operation, clock) = (self.operation, self.context.clock());
        let wanted = self.route_request(view, state);
        let route = routing::resolve(&wanted, view.account, view.partitions);
        if let Some(diversion) = &route.diversion {
            events::diverted(route.endpoint.region(), diversion);
        }
        let context = match previous {
            None => ExecutionContext::Initial,
            Some(previous) if previous == route.endpoint.region() => ExecutionContext::Retry,
            Some(_) => ExecutionContext::Failover,
        };
        let started = clock.now();
        let second = routing::resolve_second(&route, &wanted, view.account, view.partitions);
        let hedging = &self.settings.hedging;
        // Only the first attempt is hedged: later ones already avoid the regions that failed.
        let is_raced =
            previous.is_none() && second.is_some() && is_eligible(operation, hedging, view.account);
        let policy =
            SilencePolicy { is_checked: second.is_some(), may_give_up: operation.is_idempotent(), is_raced };
        let first = self.send(view, state, (&route, context, started), policy);
        let Some(second) = second.filter(|_| is_raced) else {
            let result = first.await;
            self.record_latency(&route, started, &result);
            return AttemptResult {
                context,
                route,
                started,
                result,
                other: None,
                other_maybe_applied: false,
            };
        };
        let p99 = route.endpoint.latencies().p99(operation.kind(), started);
        let time_left = self.deadline.saturating_duration_since(started);
        let after = threshold(hedging.threshold, p99, time_left);
        let policy =
            SilencePolicy { is_checked: wanted.region_count(view.account) > 2, is_raced: false, ..policy };
        let start = || {
            let permit = self.context.hedging_budget().take(hedging.concurrent_max.get())?;
            let (context, started) = (ExecutionContext::Hedging, clock.now());
            Some((permit, self.send(view, state, (&second, context, started), policy)))
        };
        let race = hedging::race(clock, after, first, start, |outcome| is_final(operation, outcome)).await;
        self.race_winner(race, (context, route, started), second)
    }

    /// Sends one request to a region. Ends with its result, or when the region is silent; dropped before that, it is
    /// judged by how long the region was silent.
    async fn send(
        &self,
        view: &AttemptView<'_>,
        state: &RetryState,
        (route, context, started): (&Route, ExecutionContext, Instant),
        policy: SilencePolicy,
    ) -> GatewayResult {
        let builder = RequestBuilder {
            operation: self.operation,
            settings: self.settings,
            location: view.location,
            account: view.account,
            deadline: self.deadline,
        };
        let progress = AttemptProgress::default();
        let guard =
            AttemptGuard { execution: self, view, state, route, context, started, progress: &progress };
        let request = builder.request(&route.endpoint, context, &progress);
        let sending = pin!(self.context.send(request, self.settings));
        let result = self.unless_silent(&route.endpoint, started, policy, sending).await;
        guard.finished();
        result
    }

    /// Takes the result that counts out of a race.
    fn race_winner(
        &self,
        race: RaceResult,
        first: (ExecutionContext, Route, Instant),
        second_route: Route,
    ) -> AttemptResult {
        let (context, route, started) = first;
        let was_denied = race.was_denied;
        let Winner { side, other_maybe_applied } = choose(self.operation, &race.first, &race.second);
        let second_started = race.second_started.unwrap_or(started);
        let first = RaceEntry { context, route, attempt: race.first, started };
        let second = RaceEntry {
            context: ExecutionContext::Hedging,
            route: second_route,
            attempt: race.second,
            started: second_started,
        };
        let (winner, other) = match side {
            Side::First => (first, second),
            Side::Second => (second, first),
        };
        let RaceEntry { context, route, attempt: RaceAttempt::Finished(result), started } = winner else {
            unreachable!("one of two attempts has finished")
        };
        // An attempt that was slow and could not be hedged would raise the threshold for all that follow.
        if !was_denied {
            self.record_latency(&route, started, &result);
        }
        let other = (!matches!(other.attempt, RaceAttempt::NotStarted)).then_some(other);
        AttemptResult { context, route, started, result, other, other_maybe_applied }
    }

    /// Records how long a region took to respond, for the hedging threshold.
    fn record_latency(&self, route: &Route, started: Instant, result: &GatewayResult) {
        if let GatewayOutcome::Success(_) = result.outcome {
            let now = self.context.clock().now();
            let took = now.saturating_duration_since(started);
            route.endpoint.latencies().record(self.operation.kind(), took, now);
        }
    }

    /// Decides what follows an attempt.
    pub(super) fn evaluate(
        &self,
        attempt: &AttemptResult,
        view: &AttemptView<'_>,
        state: &RetryState,
    ) -> Decision {
        let AttemptResult { context, route, started, result, .. } = attempt;
        let mut decision = self.evaluate_result((route, *context, *started), result, view, state);
        // The other attempt of a race says something about its region, too.
        if let Some(RaceEntry { context, route, attempt: RaceAttempt::Finished(result), started }) =
            &attempt.other
        {
            let other = self.evaluate_result((route, *context, *started), result, view, state);
            decision.effects.extend(other.effects);
        }
        decision
    }

    fn evaluate_result(
        &self,
        (route, context, started): (&Route, ExecutionContext, Instant),
        result: &GatewayResult,
        view: &AttemptView<'_>,
        state: &RetryState,
    ) -> Decision {
        if let GatewayOutcome::Success(_) = result.outcome {
            return Decision::finish();
        }
        let now = self.context.clock().now();
        let took = now.saturating_duration_since(started);
        let endpoint = &route.endpoint;
        // A deadline may have left the region no time; a connection that failed had its chance.
        let had_time = match result.outcome {
            GatewayOutcome::DeadlineExceeded { .. } => {
                is_long(took, endpoint.latencies().p99(self.operation.kind(), now), context)
            }
            GatewayOutcome::Success(_)
            | GatewayOutcome::ServiceError(_)
            | GatewayOutcome::NoResponse { .. } => true,
        };
        let is_silent = result.is_silent() && had_time;
        let no_response =
            is_silent.then(|| NoResponse { started, last_response: endpoint.last_response().get() });
        evaluate(&result.outcome, &self.situation(route, view, state, no_response))
    }

    /// The situation of an attempt, for its evaluation.
    pub(super) fn situation<'b>(
        &'b self,
        route: &'b Route,
        view: &AttemptView<'b>,
        state: &'b RetryState,
        no_response: Option<NoResponse>,
    ) -> Situation<'b> {
        let region = route.endpoint.region();
        let wanted = self.route_request(view, state);
        let hub = view.account.hub().region();
        let hub_is_untried = hub != region && !state.regions_tried.contains(hub);
        Situation {
            operation: self.operation,
            region,
            hub_has_more: !view.account.is_multi_write() && hub_is_untried,
            partition: wanted.partition,
            other_regions: routing::count_untried(region, &wanted, view.account),
            partition_failover: view.account.has_partition_failover() && !view.account.is_multi_write(),
            state,
            no_response,
            policy: &self.settings.retry,
            random: self.context.random(),
        }
    }

    fn route_request<'b>(&self, view: &AttemptView<'b>, state: &'b RetryState) -> RouteRequest<'b>
    where
        'a: 'b,
    {
        RouteRequest {
            access: self.operation.access(),
            partition: view.location.and_then(|location| location.partition.as_ref()),
            excluded: &self.settings.regions.excluded,
            already_tried: &state.regions_tried,
            prefer_hub: state.prefer_hub,
        }
    }
}
