//! The record of an operation: attempts into diagnostics, session tokens into the session, and the response.

use protocol::headers as names;
use protocol::partition_range::RangeId;
use protocol::status::{Status, SubStatus};

use super::attempt::{AttemptResult, RaceEntry};
use super::context::PipelineContext;
use super::location::Location;
use super::{AttemptView, Execution};
use crate::diagnostics::{ExecutionContext, SentTo};
use crate::error::{Error, Result};
use crate::gateway::{GatewayOutcome, GatewayResult};
use crate::hedging::winner::RaceAttempt;
use crate::response::Response;
use crate::routing::{PartitionRegion, Region, Route};
use crate::telemetry::{update_account, update_breaker};
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
            let sent_to = sent_to(context, &route, range);
            match attempt {
                RaceAttempt::Finished(result) => {
                    for record in result.earlier.into_iter().chain(result.last) {
                        self.recorder.sent(sent_to, record, "the other attempt counts");
                    }
                }
                RaceAttempt::Abandoned => {
                    self.recorder.abandoned(sent_to, started, self.context.clock().now());
                }
                RaceAttempt::NotStarted => {}
            }
        }
        let sent_to = sent_to(attempt.context, &attempt.route, range);
        let GatewayResult { outcome, last, earlier } = attempt.result;
        for record in earlier {
            self.recorder.sent(sent_to, record, "again in the same region");
        }
        if let Some(record) = last {
            self.recorder.sent(sent_to, record, reason);
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
            update_account(self.context.account(), |account| account.mark_available(region));
        }
        if !view.partitions.is_empty()
            && let Some(partition) = view.location.and_then(|location| location.partition.clone())
        {
            let key = PartitionRegion { partition, region: region.clone(), access: self.operation.access() };
            if view.partitions.remembers(&key) {
                update_breaker(self.context.partitions(), &key, |partitions| partitions.record_success(&key));
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

fn sent_to(context: ExecutionContext, route: &Route, range: Option<RangeId>) -> SentTo<'_> {
    SentTo { context, endpoint: &route.endpoint, range, diversion: route.diversion.as_ref() }
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
