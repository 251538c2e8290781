//! The scope of a query or feed: an EPK range and the partitions that own it.

use std::sync::Arc;

use protocol::partition::EpkRange;

use crate::regions::ReadContext;
use crate::store::{Container, Partition, PartitionView};

/// An EPK range, with views of its partitions in order.
#[derive(Clone)]
pub struct Scope {
    /// Views of the partitions, in EPK order.
    pub partitions: Vec<PartitionView>,
    /// The EPK range to read.
    pub within: EpkRange,
}

impl Scope {
    /// The scope of an EPK range, with the partitions that own it now.
    pub fn of_range(container: &Container, within: EpkRange, read: ReadContext) -> Scope {
        Scope { partitions: container.views_over(&within, read), within }
    }

    /// The scope of one partition, or of the part of it that lies within `within`.
    pub fn of_partition(partition: Arc<Partition>, within: Option<&EpkRange>, read: ReadContext) -> Scope {
        let within = match within {
            Some(within) => within
                .intersect(&partition.range)
                .unwrap_or_else(|| EpkRange::new(partition.range.min.clone(), partition.range.min.clone())),
            None => partition.range.clone(),
        };
        Scope { partitions: vec![PartitionView::new(partition, read)], within }
    }

    /// The part of the range that one of the partitions owns, and whether that is all it owns.
    pub fn range_in(&self, partition: &Partition) -> (EpkRange, bool) {
        let whole = self.within.covers(&partition.range);
        let part =
            if whole { Some(partition.range.clone()) } else { self.within.intersect(&partition.range) };
        (part.unwrap_or_else(|| self.within.clone()), whole)
    }
}
