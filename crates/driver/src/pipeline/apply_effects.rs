//! Applies the effects of a decision to the states and caches they are about.

use std::time::Instant;

use super::context::PipelineContext;
use super::decision::{Access, Effect};
use super::location::Location;

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
                context.account().update(|account| account.mark_unavailable(&region, what, now));
            }
            Effect::RefreshAccount => context.refresh_account(deadline).await,
            Effect::PartitionFailed(key, access) => {
                let is_read = access == Access::Read;
                context.partitions().update(|partitions| partitions.record_failure(&key, is_read, now));
            }
            Effect::PartitionTripped(key) => {
                context.partitions().update(|partitions| partitions.trip(&key, now));
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
