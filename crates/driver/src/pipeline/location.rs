//! The container and physical partition of an operation, as the caches know them.

use std::sync::Arc;

use protocol::partition::EpkRange;
use protocol::partition_range::RangeId;

use crate::cache::{Container, PartitionRanges};
use crate::routing::PartitionId;
use crate::session::SessionScope;

/// A container, and the part of it that an operation is about.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// The container of the operation.
    pub(crate) container: Arc<Container>,
    /// The partition ranges of the container, when they were needed to find the partition.
    pub(crate) ranges: Option<Arc<PartitionRanges>>,
    /// The physical partition; none when the gateway finds it, or there are several.
    pub(crate) partition: Option<PartitionId>,
    /// The EPK range within the partition, when the operation is not about all of it.
    pub(crate) bounds: Option<EpkRange>,
}

impl Location {
    /// The part of the container whose session token is sent.
    pub(crate) fn session_scope(&self) -> SessionScope<'_> {
        match (&self.partition, &self.ranges) {
            (Some(partition), Some(ranges)) => {
                let parents = ranges.map().get(partition.range).map_or(&[][..], |range| &range.parents);
                SessionScope::Range { id: partition.range, parents }
            }
            _ => SessionScope::Unknown,
        }
    }

    /// The id of the physical partition.
    pub(crate) fn range(&self) -> Option<RangeId> {
        self.partition.as_ref().map(|partition| partition.range)
    }
}
