//! Attempts whose region is silent: they are noticed while they wait, and judged however they end.
//!
//! An attempt without a response asks after a while whether its region still responds to anything, and if it does
//! not, an operation that may be repeated continues in another region. An attempt that is dropped before its
//! response, because another one was faster or the caller left, counts against the region all the same:
//! [`AttemptGuard`] records it. What silence means is decided in `evaluate` and `routing`.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use perihelion_http::trace::{RequestTrace, Sent};

use super::context::PipelineContext;
use super::decision::NoResponse;
use super::retry_state::RetryState;
use super::{AttemptView, Execution, apply_effects};
use crate::clock::after;
use crate::diagnostics::{ExecutionContext, SendRecord};
use crate::gateway::{AttemptProgress, GatewayOutcome, GatewayResult};
use crate::hedging;
use crate::operation::Plane;
use crate::options::{THRESHOLD_CEILING, THRESHOLD_FLOOR};
use crate::routing::{Endpoint, ProbeRole, Route};
use crate::telemetry::update_account;

/// How long an attempt, and then the probe of its region, waits for a response: a quarter of the time that is
/// left, within these limits.
const WAIT_MIN: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(1);
/// The limit for metadata: operations with a deadline of their own wait for it, and it is read quickly.
const METADATA_WAIT_MAX: Duration = Duration::from_millis(500);
/// The resolution of `LastResponse`: silence begins so long after a response.
const TICK: Duration = Duration::from_micros(1);

/// What an attempt does when its region is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SilencePolicy {
    /// Whether another region could serve the operation, so that it matters whether this one responds.
    pub(super) is_checked: bool,
    /// Whether the attempt may be given up, because the operation may be sent again.
    pub(super) may_give_up: bool,
    /// Whether the attempt is raced, so that it is polled again when the hedging threshold has passed.
    pub(super) is_raced: bool,
}

impl<C: PipelineContext> Execution<'_, C> {
    /// The result of `work`, or of giving it up because its region is silent.
    pub(super) async fn unless_silent(
        &self,
        endpoint: &Endpoint,
        started: Instant,
        policy: SilencePolicy,
        mut work: Pin<&mut impl Future<Output = GatewayResult>>,
    ) -> GatewayResult {
        if !policy.is_checked {
            return work.await;
        }
        // A response that comes at once, or before the hedging threshold, needs no timer.
        let mut polls_left = 1 + u32::from(policy.is_raced);
        let early = poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending => {
                polls_left -= 1;
                if polls_left == 0 { Poll::Ready(None) } else { Poll::Pending }
            }
        });
        if let Some(result) = early.await {
            return result;
        }
        let time_left = self.deadline.saturating_duration_since(started);
        let wait = wait_for_response(time_left, self.operation.plane());
        let clock = self.context.clock();
        // A region that responded while the attempt waited may fall silent later, so it is asked again and again.
        // Ends: with `work`, which the attempt's timeout ends, or when the region is silent.
        let mut since = started;
        loop {
            if let Either::Left((result, _)) =
                select(work.as_mut(), clock.sleep_until(after(since, wait))).await
            {
                return result;
            }
            match select(work.as_mut(), Box::pin(self.responds(endpoint, since, wait))).await {
                Either::Left((result, _)) => return result,
                Either::Right((true, _)) => {
                    let newer = endpoint.last_response().get().map(|response| after(response, TICK));
                    since = newer.filter(|newer| *newer > since).unwrap_or_else(|| clock.now());
                }
                Either::Right((false, _)) if policy.may_give_up => {
                    // An attempt that began before the last response does not count by itself.
                    if since > started {
                        self.record_no_response(endpoint, since);
                    }
                    return silent(endpoint, started, clock.now().saturating_duration_since(started));
                }
                // It cannot be sent again. Its response may still come, and the others need not wait for it.
                Either::Right((false, work)) => {
                    self.record_no_response(endpoint, since);
                    return work.await;
                }
            }
        }
    }

    /// Whether a region, which an attempt has had no response from since then, responds to anything.
    async fn responds(&self, endpoint: &Endpoint, since: Instant, wait: Duration) -> bool {
        let has_responded = || endpoint.last_response().get().is_some_and(|response| response >= since);
        if has_responded() {
            return true;
        }
        let clock = self.context.clock();
        let (now, region) = (clock.now(), endpoint.region());
        let role = self.context.account().update_with(|account| {
            account.begin_probe(region, since, endpoint.last_response().get(), now, wait)
        });
        match role {
            ProbeRole::Send if self.context.probe(endpoint, after(now, wait)).await => true,
            ProbeRole::Send => {
                self.record_no_response(endpoint, since);
                false
            }
            ProbeRole::WaitUntil(end) => {
                clock.sleep_until(end).await;
                has_responded()
            }
        }
    }

    fn record_no_response(&self, endpoint: &Endpoint, started: Instant) {
        let (now, last_response) = (self.context.clock().now(), endpoint.last_response().get());
        update_account(self.context.account(), |account| {
            account.record_no_response(endpoint.region(), started, last_response, now)
        });
    }
}

/// How long to wait for a response, and then for that of a probe, with so much time left.
fn wait_for_response(time_left: Duration, plane: Plane) -> Duration {
    let max = match plane {
        Plane::Data => WAIT_MAX,
        Plane::Metadata => METADATA_WAIT_MAX,
    };
    (time_left / 4).clamp(WAIT_MIN, max)
}

/// The result of an attempt that was given up because its region is silent.
fn silent(endpoint: &Endpoint, started: Instant, took: Duration) -> GatewayResult {
    let message = format!("{} does not respond, not even to a probe of its region", endpoint.authority());
    let error = azure_core::Error::with_message(azure_core::error::ErrorKind::Io, message);
    let sent = Sent::MaybeSent;
    let record = SendRecord {
        started,
        took,
        status: None,
        charge: 0.0,
        sent,
        shard: None,
        waited: Duration::ZERO,
        exchange: RequestTrace::default(),
    };
    GatewayResult {
        outcome: GatewayOutcome::NoResponse { error, sent },
        last: Some(record),
        earlier: Vec::new(),
    }
}

/// Whether a region that is well would have responded in that time: its recent 99th percentile has passed. Where
/// that is not known, a hedged attempt, which goes to a region farther away, is waited for longer.
pub(super) fn is_long(took: Duration, p99: Option<Duration>, context: ExecutionContext) -> bool {
    let unknown = match context {
        ExecutionContext::Hedging => hedging::THRESHOLD_UNKNOWN,
        ExecutionContext::Initial
        | ExecutionContext::Retry
        | ExecutionContext::Failover
        | ExecutionContext::Probe => THRESHOLD_FLOOR,
    };
    took >= p99.unwrap_or(unknown).clamp(THRESHOLD_FLOOR, THRESHOLD_CEILING)
}

/// Judges an attempt that is dropped before its result.
pub(super) struct AttemptGuard<'a, C: PipelineContext> {
    pub(super) execution: &'a Execution<'a, C>,
    pub(super) view: &'a AttemptView<'a>,
    pub(super) state: &'a RetryState,
    pub(super) route: &'a Route,
    pub(super) context: ExecutionContext,
    pub(super) started: Instant,
    pub(super) progress: &'a AttemptProgress,
}

impl<C: PipelineContext> AttemptGuard<'_, C> {
    /// Ends the guard of an attempt that has a result.
    pub(super) fn finished(self) {
        std::mem::forget(self);
    }
}

impl<C: PipelineContext> Drop for AttemptGuard<'_, C> {
    fn drop(&mut self) {
        if !self.progress.is_silent() {
            return;
        }
        let Execution { context, operation, .. } = self.execution;
        let now = context.clock().now();
        let (endpoint, took) = (&self.route.endpoint, now.saturating_duration_since(self.started));
        if is_long(took, endpoint.latencies().p99(operation.kind(), now), self.context) {
            let no_response =
                NoResponse { started: self.started, last_response: endpoint.last_response().get() };
            let situation = self.execution.situation(self.route, self.view, self.state, Some(no_response));
            apply_effects::apply_now(*context, &situation.silence(), self.view.location);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_deadlines_leave_time_for_another_region() {
        for (time_left, wait) in [(60_000, 1000), (5000, 1000), (2000, 500), (1000, 250), (10, 250)] {
            let left = Duration::from_millis(time_left);
            assert_eq!(wait_for_response(left, Plane::Data), Duration::from_millis(wait), "{time_left}");
        }
        let metadata = wait_for_response(Duration::from_secs(60), Plane::Metadata);
        assert_eq!(metadata, Duration::from_millis(500));
    }

    #[test]
    fn silence_is_long_when_a_healthy_region_would_have_responded() {
        let ms = Duration::from_millis;
        for (took, p99, context, long) in [
            (49, Some(2), ExecutionContext::Initial, false),
            (50, Some(2), ExecutionContext::Initial, true),
            (120, Some(200), ExecutionContext::Initial, false),
            (200, Some(200), ExecutionContext::Hedging, true),
            (50, None, ExecutionContext::Failover, true),
            (499, None, ExecutionContext::Hedging, false),
            (500, None, ExecutionContext::Hedging, true),
        ] {
            assert_eq!(is_long(ms(took), p99.map(ms), context), long, "{took} {p99:?} {context:?}");
        }
    }
}
