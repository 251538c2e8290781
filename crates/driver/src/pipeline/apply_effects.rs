//! Applies the effects of a decision to the states and caches they are about.

use std::time::Instant;

use super::context::PipelineContext;
use super::decision::{Access, Effect};
use super::location::Location;
use crate::routing::{PartitionRegion, PartitionState, Unavailable};
use crate::telemetry::events;

/// Applies the effects of a decision, in order.
pub(crate) async fn apply<C: PipelineContext>(
    context: &C,
    effects: Vec<Effect>,
    location: Option<&Location>,
    deadline: Instant,
) {
    for effect in effects {
        let now = context.clock().now();
        match effect {
            Effect::MarkUnavailable(region, what) => {
                let was_available = context.account().update_with(|account| {
                    let was_available = !account.is_unavailable(&region, what == Unavailable::All);
                    (account.mark_unavailable(&region, what, now), was_available)
                });
                if was_available {
                    events::region_unavailable(&region, what);
                }
            }
            Effect::RefreshAccount => context.refresh_account(deadline).await,
            Effect::PartitionFailed(key, access) => {
                let is_read = access == Access::Read;
                update_breaker(context, &key, |partitions| partitions.record_failure(&key, is_read, now));
            }
            Effect::PartitionTripped(key) => {
                update_breaker(context, &key, |partitions| partitions.trip(&key, now));
            }
            Effect::RefreshPartitions(_) => {
                if let Some(location) = location {
                    context.refresh_partitions(location, deadline).await;
                }
            }
            Effect::ForgetContainer(_) => {
                if let Some(location) = location {
                    context.forget_container(&location.container);
                }
            }
        }
    }
}

/// Changes the state of the breakers, and tells whether that of `key` opened or closed.
pub(crate) fn update_breaker<C: PipelineContext>(
    context: &C,
    key: &PartitionRegion,
    change: impl FnOnce(&PartitionState) -> PartitionState,
) {
    let (before, after) = context.partitions().update_with(|partitions| {
        let next = change(partitions);
        let states = (partitions.state_of(key), next.state_of(key));
        (next, states)
    });
    events::breaker_changed(key, before, after);
}
