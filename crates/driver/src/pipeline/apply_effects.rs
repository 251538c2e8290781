//! Applies the effects of a decision to the states and caches they are about.

use std::time::Instant;

use super::context::PipelineContext;
use super::decision::{Effect, NoResponse};
use super::location::Location;
use crate::telemetry::{update_account, update_breaker};

/// Applies the effects that change states and caches, in order. Nothing here waits.
pub(crate) fn apply_now<C: PipelineContext>(context: &C, effects: &[Effect], location: Option<&Location>) {
    for effect in effects {
        let now = context.clock().now();
        match effect {
            Effect::MarkUnavailable(region, what) => {
                update_account(context.account(), |account| account.mark_unavailable(region, *what, now));
            }
            Effect::RegionSilent(region, NoResponse { started, last_response }) => {
                update_account(context.account(), |account| {
                    account.record_no_response(region, *started, *last_response, now)
                });
            }
            Effect::PartitionFailed(key, failure) => {
                update_breaker(context.partitions(), key, |partitions| {
                    partitions.record_failure(key, *failure, now)
                });
            }
            Effect::PartitionTripped(key) => {
                update_breaker(context.partitions(), key, |partitions| partitions.trip(key, now));
            }
            Effect::ForgetContainer(_) => {
                if let Some(location) = location {
                    context.forget_container(&location.container);
                }
            }
            Effect::RefreshAccount | Effect::RefreshPartitions(_) => {}
        }
    }
}

/// Reads again what a decision found out of date. Waits for it until the deadline.
pub(crate) async fn refresh<C: PipelineContext>(
    context: &C,
    effects: &[Effect],
    location: Option<&Location>,
    deadline: Instant,
) {
    for effect in effects {
        match effect {
            Effect::RefreshAccount => context.refresh_account(deadline).await,
            Effect::RefreshPartitions(_) => {
                if let Some(location) = location {
                    context.refresh_partitions(location, deadline).await;
                }
            }
            Effect::MarkUnavailable(..)
            | Effect::RegionSilent(..)
            | Effect::PartitionFailed(..)
            | Effect::PartitionTripped(_)
            | Effect::ForgetContainer(_) => {}
        }
    }
}
