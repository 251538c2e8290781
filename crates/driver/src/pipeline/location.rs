//! Which physical partition an operation is about. Pure, over what is known of the container.

use std::sync::Arc;

use protocol::container::PartitionKeyDefinition;
use protocol::partition::{EpkRange, effective_key, prefix_range};
use protocol::partition_range::RangeId;

use crate::cache::{Container, PartitionRanges};
use crate::operation::Scope;
use crate::routing::{PartitionId, PartitionMap};
use crate::session::SessionScope;

/// A container, and the part of it that is meant.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// The container.
    pub(crate) container: Arc<Container>,
    /// Its ranges, when they were needed to find the part.
    pub(crate) ranges: Option<Arc<PartitionRanges>>,
    /// The physical partition; none when the gateway finds it, or there are several.
    pub(crate) partition: Option<PartitionId>,
    /// The stretch of the partition that is meant, when it is not all of it.
    pub(crate) bounds: Option<EpkRange>,
}

impl Location {
    /// For which part tokens are sent.
    pub(crate) fn session_scope(&self) -> SessionScope<'_> {
        match (&self.partition, &self.ranges) {
            (Some(partition), Some(ranges)) => {
                let parents = ranges.map().get(partition.range).map_or(&[][..], |range| &range.parents);
                SessionScope::Range { id: partition.range, parents }
            }
            _ => SessionScope::Unknown,
        }
    }

    /// The number of the physical partition.
    pub(crate) fn range(&self) -> Option<RangeId> {
        self.partition.as_ref().map(|partition| partition.range)
    }
}

/// Where a scope lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// In one partition, or in that part of it.
    In(RangeId, Option<EpkRange>),
    /// In several, or the gateway will know.
    Anywhere,
    /// In several, though it was meant to be one: the work must be divided anew.
    Divided,
}

/// Whether the ranges of the container are needed to place a scope.
pub(crate) fn needs_ranges(scope: &Scope) -> bool {
    match scope {
        Scope::Whole => false,
        Scope::Key(_) | Scope::Range(_) | Scope::Partition(_) => true,
    }
}

/// Finds the partition of a scope. Cost: one hash of the key and a binary search.
pub(crate) fn place(scope: &Scope, definition: &PartitionKeyDefinition, map: &PartitionMap) -> Placed {
    match scope {
        Scope::Whole => Placed::Anywhere,
        Scope::Key(key) if key.components().len() < definition.paths.len() => {
            match map.overlapping(&prefix_range(definition, key)) {
                [partition] => Placed::In(partition.id, None),
                _ => Placed::Anywhere,
            }
        }
        Scope::Key(key) => Placed::In(map.owner(&effective_key(definition, key)).id, None),
        Scope::Range(range) => match map.overlapping(range) {
            [partition] if partition.range == *range => Placed::In(partition.id, None),
            [partition] => Placed::In(partition.id, Some(range.clone())),
            _ => Placed::Divided,
        },
        // If it is gone, the service says so.
        Scope::Partition(id) => Placed::In(*id, None),
    }
}

#[cfg(test)]
mod tests {
    use protocol::partition::{EffectivePartitionKey, PartitionKey, even_split};
    use protocol::partition_range::PartitionKeyRange;
    use protocol::resource_id::{ContainerRid, DatabaseRid};

    use super::*;

    fn map(definition: &PartitionKeyDefinition, count: usize) -> PartitionMap {
        let container = ContainerRid { database: DatabaseRid(0), container: 0 };
        let ranges = even_split(definition, count).into_iter().zip(0..);
        let listed =
            ranges.map(|(range, id)| PartitionKeyRange::new(container, RangeId(id), range)).collect();
        PartitionMap::new(listed).expect("a ring")
    }

    #[test]
    fn a_key_is_in_the_partition_that_owns_its_hash() {
        let definition = PartitionKeyDefinition::hash("/pk").expect("a path");
        let map = map(&definition, 2);
        let key = PartitionKey::single("redmond");
        assert_eq!(place(&Scope::Key(key), &definition, &map), Placed::In(RangeId(1), None));
        assert_eq!(place(&Scope::Whole, &definition, &map), Placed::Anywhere);
        assert_eq!(place(&Scope::Partition(RangeId(7)), &definition, &map), Placed::In(RangeId(7), None));
    }

    #[test]
    fn a_stretch_is_in_one_partition_or_has_to_be_divided() {
        let definition = PartitionKeyDefinition::hash("/pk").expect("a path");
        let map = map(&definition, 2);
        let second = map.partitions()[1].range.clone();
        let part = EpkRange::new(second.min.clone(), EffectivePartitionKey::from_hex("2F").expect("hex"));
        for (range, expected) in [
            (second.clone(), Placed::In(RangeId(1), None)),
            (part.clone(), Placed::In(RangeId(1), Some(part))),
            (EpkRange::FULL, Placed::Divided),
        ] {
            assert_eq!(place(&Scope::Range(range), &definition, &map), expected);
        }
    }
}
