//! One attempt: route, build the request, send it, and race a second region if the first is slow.

use std::time::Instant;

use super::build_request::RequestBuilder;
use super::context::PipelineContext;
use super::decision::Decision;
use super::evaluate::{Situation, evaluate};
use super::retry_state::RetryState;
use super::{AttemptView, Execution};
use crate::diagnostics::ExecutionContext;
use crate::gateway::{GatewayOutcome, GatewayResult};
use crate::hedging::winner::{RaceAttempt, Side, Winner, choose, is_final};
use crate::hedging::{self, RaceResult, is_eligible, threshold};
use crate::routing::{self, Region, Route, RouteRequest};

/// The result of one attempt, or of a race of two.
pub(super) struct AttemptResult {
    pub(super) context: ExecutionContext,
    pub(super) route: Route,
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
        let context = match previous {
            None => ExecutionContext::Initial,
            Some(previous) if previous == route.endpoint.region() => ExecutionContext::Retry,
            Some(_) => ExecutionContext::Failover,
        };
        let builder = RequestBuilder {
            operation,
            settings: self.settings,
            location: view.location,
            account: view.account,
            deadline: self.deadline,
        };
        let started = clock.now();
        let first = self.context.send(builder.request(&route.endpoint, context), self.settings);
        let hedging = &self.settings.hedging;
        // Only the first attempt is hedged: later ones already avoid the regions that failed.
        let second = match previous {
            None => routing::resolve_second(&route, &wanted, view.account, view.partitions)
                .filter(|_| is_eligible(operation, hedging, view.account)),
            Some(_) => None,
        };
        let Some(second) = second else {
            let result = first.await;
            self.record_latency(&route, started, &result);
            return AttemptResult { context, route, result, other: None, other_maybe_applied: false };
        };
        let latencies = route.endpoint.latencies();
        let after = threshold(hedging.threshold, latencies.p99(operation.kind(), started));
        let start = || {
            let permit = self.context.hedging_budget().take(hedging.concurrent_max.get())?;
            let request = builder.request(&second.endpoint, ExecutionContext::Hedging);
            Some((permit, self.context.send(request, self.settings)))
        };
        let race = hedging::race(clock, after, first, start, |outcome| is_final(operation, outcome)).await;
        self.race_winner(race, (context, route, started), second)
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
        let RaceAttempt::Finished(result) = winner.attempt else {
            unreachable!("one of two attempts has finished")
        };
        // An attempt that was slow and could not be hedged would raise the threshold for all that follow.
        if !was_denied {
            self.record_latency(&winner.route, winner.started, &result);
        }
        let other = (!matches!(other.attempt, RaceAttempt::NotStarted)).then_some(other);
        AttemptResult { context: winner.context, route: winner.route, result, other, other_maybe_applied }
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
        let mut decision = self.evaluate_outcome(&attempt.route, &attempt.result.outcome, view, state);
        // The other attempt of a race says something about its region, too.
        if let Some(RaceEntry { route, attempt: RaceAttempt::Finished(result), .. }) = &attempt.other {
            decision.effects.extend(self.evaluate_outcome(route, &result.outcome, view, state).effects);
        }
        decision
    }

    fn evaluate_outcome(
        &self,
        route: &Route,
        outcome: &GatewayOutcome,
        view: &AttemptView<'_>,
        state: &RetryState,
    ) -> Decision {
        if let GatewayOutcome::Success(_) = outcome {
            return Decision::finish();
        }
        let region = route.endpoint.region();
        let wanted = self.route_request(view, state);
        let hub = view.account.hub().region();
        let hub_is_untried = hub != region && !state.regions_tried.contains(hub);
        let situation = Situation {
            operation: self.operation,
            region,
            hub_has_more: !view.account.is_multi_write() && hub_is_untried,
            partition: wanted.partition,
            other_regions: routing::count_untried(region, &wanted, view.account),
            partition_failover: view.account.has_partition_failover() && !view.account.is_multi_write(),
            state,
            policy: &self.settings.retry,
            random: self.context.random(),
        };
        evaluate(outcome, &situation)
    }

    fn route_request<'b>(&self, view: &AttemptView<'b>, state: &'b RetryState) -> RouteRequest<'b>
    where
        'a: 'b,
    {
        RouteRequest {
            is_read: self.operation.is_read_only(),
            partition: view.location.and_then(|location| location.partition.as_ref()),
            excluded: &self.settings.regions.excluded,
            already_tried: &state.regions_tried,
            prefer_hub: state.prefer_hub,
        }
    }
}
