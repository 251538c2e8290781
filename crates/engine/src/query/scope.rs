//! Where a request may look: a stretch of the ring and the partitions that own it.

use std::sync::Arc;

use protocol::partition::EpkRange;

use crate::regions::ReadContext;
use crate::store::{Container, Partition, PartitionView};

/// A stretch of the ring, with its partitions in order.
#[derive(Clone)]
pub struct Scope {
    pub partitions: Vec<PartitionView>,
    pub within: EpkRange,
}

impl Scope {
    /// A stretch of the ring, whoever owns it.
    pub fn of_range(container: &Container, within: EpkRange, vantage: ReadContext) -> Scope {
        Scope { partitions: container.views_over(&within, vantage), within }
    }

    /// One partition, or the part of it that lies within `within`.
    pub fn of_partition(partition: Arc<Partition>, within: Option<&EpkRange>, vantage: ReadContext) -> Scope {
        let within = match within {
            Some(within) => within
                .intersect(&partition.range)
                .unwrap_or_else(|| EpkRange::new(partition.range.min.clone(), partition.range.min.clone())),
            None => partition.range.clone(),
        };
        Scope { partitions: vec![PartitionView::new(partition, vantage)], within }
    }

    /// The part of the stretch that one of the partitions owns, and whether that is all it owns.
    pub fn range_in(&self, partition: &Partition) -> (EpkRange, bool) {
        let whole = self.within.covers(&partition.range);
        let part =
            if whole { Some(partition.range.clone()) } else { self.within.intersect(&partition.range) };
        (part.unwrap_or_else(|| self.within.clone()), whole)
    }
}
