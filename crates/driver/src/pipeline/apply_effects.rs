//! Carries effects to the states and caches they are about.

use std::time::Instant;

use super::location::Location;
use super::step::{Access, Effect};
use super::surroundings::Surroundings;

/// Carries out what an evaluation asked for, in order.
pub(crate) async fn apply<S: Surroundings>(
    surroundings: &S,
    effects: Vec<Effect>,
    location: Option<&Location>,
    deadline: Instant,
) {
    for effect in effects {
        let now = surroundings.clock().now();
        match effect {
            Effect::MarkUnavailable(region, what) => {
                surroundings.account().update(|account| account.mark_unavailable(&region, what, now));
            }
            Effect::RefreshAccount => surroundings.refresh_account(deadline).await,
            Effect::PartitionFailed(key, access) => {
                let is_read = access == Access::Read;
                surroundings.partitions().update(|partitions| partitions.record_failure(&key, is_read, now));
            }
            Effect::PartitionTripped(key) => {
                surroundings.partitions().update(|partitions| partitions.trip(&key, now));
            }
            Effect::RefreshPartitions(_) => {
                if let Some(location) = location {
                    surroundings.refresh_partitions(location, deadline).await;
                }
            }
            Effect::ForgetContainer(_) => {
                if let Some(location) = location {
                    surroundings.forget_container(&location.container);
                }
            }
        }
    }
}
