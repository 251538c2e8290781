//! The record of an operation: attempts into diagnostics, session tokens into the session, and the response.

use protocol::headers as names;
use protocol::status::{Status, SubStatus};

use super::apply_effects::update_breaker;
use super::attempt::{AttemptResult, RaceEntry};
use super::context::PipelineContext;
use super::location::Location;
use super::{AttemptView, Execution};
use crate::error::{Error, Result};
use crate::gateway::{GatewayOutcome, GatewayResult};
use crate::hedging::winner::RaceAttempt;
use crate::response::Response;
use crate::routing::{PartitionRegion, Region};
use crate::telemetry::events;
use crate::transport::TransportResponse;

impl<C: PipelineContext> Execution<'_, C> {
    /// Records an attempt, and returns its outcome.
    pub(super) fn record(
        &mut self,
        attempt: AttemptResult,
        view: &AttemptView<'_>,
        reason: &'static str,
    ) -> GatewayOutcome {
        let range = view.location.and_then(Location::range);
        if let Some(RaceEntry { context, route, attempt, started }) = attempt.other {
            match attempt {
                RaceAttempt::Finished(result) => {
                    for record in result.earlier.into_iter().chain(result.last) {
                        let reason = "the other attempt counts";
                        self.recorder.sent(context, &route.endpoint, range, record, reason);
                    }
                }
                RaceAttempt::Abandoned => {
                    let now = self.context.clock().now();
                    self.recorder.abandoned(context, &route.endpoint, range, started, now);
                }
                RaceAttempt::NotStarted => {}
            }
        }
        let (context, endpoint) = (attempt.context, &attempt.route.endpoint);
        let GatewayResult { outcome, last, earlier } = attempt.result;
        for record in earlier {
            self.recorder.sent(context, endpoint, range, record, "again in the same region");
        }
        if let Some(record) = last {
            self.recorder.sent(context, endpoint, range, record, reason);
        }
        if let (Some(location), Some(response)) = (view.location, session_response(&outcome))
            && let Some(token) = response.headers.get(names::SESSION_TOKEN)
        {
            location.container.session().record(token);
        }
        outcome
    }

    /// Ends the operation with a response: the region and the partition are available again.
    pub(super) fn finish(
        self,
        outcome: GatewayOutcome,
        region: &Region,
        view: &AttemptView<'_>,
    ) -> Result<Response> {
        let GatewayOutcome::Success(response) = outcome else { unreachable!("only a success is finished") };
        let is_read = self.operation.is_read_only();
        if view.account.is_unavailable(region, is_read) {
            self.context.account().update(|account| account.mark_available(region));
            events::region_available(region);
        }
        if !view.partitions.is_empty()
            && let Some(partition) = view.location.and_then(|location| location.partition.clone())
        {
            let key = PartitionRegion { partition, region: region.clone() };
            if view.partitions.remembers(&key) {
                update_breaker(self.context, &key, |partitions| partitions.record_success(&key));
            }
        }
        let now = self.context.clock().now();
        Ok(Response::new(response.status, response.headers, response.body, self.recorder.finish(now)))
    }

    /// Ends the operation with an error, which gets the diagnostics and the resource of the operation.
    pub(super) fn with_diagnostics(self, error: Error) -> Error {
        let now = self.context.clock().now();
        error.about(self.operation.target().link()).with_diagnostics(self.recorder.finish(now))
    }
}

/// The response, if its session token counts: a success, or an error about the state of the item, which shows
/// how far the partition was.
fn session_response(outcome: &GatewayOutcome) -> Option<&TransportResponse> {
    match outcome {
        GatewayOutcome::Success(response) => Some(response),
        GatewayOutcome::ServiceError(response) => match (response.status, response.sub_status) {
            (Status::CONFLICT | Status::PRECONDITION_FAILED, _) | (Status::NOT_FOUND, SubStatus::NONE) => {
                Some(response)
            }
            _ => None,
        },
        GatewayOutcome::NoResponse { .. } | GatewayOutcome::DeadlineExceeded { .. } => None,
    }
}
