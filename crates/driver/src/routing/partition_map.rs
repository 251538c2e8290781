//! Which physical partition owns an effective partition key, or the scope of an operation.
//!
//! Built from the `pkranges` feed. Pure: reading the feed again after a split is the cache's job.

use protocol::container::PartitionKeyDefinition;
use protocol::partition::{EffectivePartitionKey, EpkRange, effective_key, prefix_range};
use protocol::partition_range::{PartitionKeyRange, RangeId};

use crate::operation::Scope;

/// One physical partition and the EPK range it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The id of the partition key range.
    pub id: RangeId,
    /// The EPK range it owns.
    pub range: EpkRange,
    /// The ids of the ranges it was split or merged from, oldest ancestors included.
    pub parents: Vec<RangeId>,
}

/// All physical partitions of a container, in EPK order, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMap {
    partitions: Vec<Partition>,
}

/// Partition ranges that do not cover the EPK space: they were read while a split was in progress.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the partition ranges of the container leave a gap or overlap at {at}; read them again")]
pub struct IncompleteMap {
    /// The effective partition key where the gap or overlap begins, in hexadecimal.
    pub at: String,
}

/// The partition that the scope of an operation lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One partition, or an EPK range within it.
    Partition(RangeId, Option<EpkRange>),
    /// Several partitions, or one that the gateway finds.
    Unresolved,
    /// Several partitions, although the scope is an EPK range that lay in one: the caller divides its work anew.
    Split,
}

impl PartitionMap {
    /// The map of a feed's entries, in any order. A range that others name as their parent no longer exists.
    pub fn new(listed: Vec<PartitionKeyRange>) -> Result<PartitionMap, IncompleteMap> {
        let gone: Vec<RangeId> = listed.iter().flat_map(|range| range.parents.iter().copied()).collect();
        let mut partitions: Vec<Partition> = listed
            .into_iter()
            .filter(|range| !gone.contains(&range.id))
            .map(|range| Partition { id: range.id, range: range.range(), parents: range.parents })
            .collect();
        partitions.sort_by(|left, right| left.range.min.cmp(&right.range.min));
        let mut expected = EffectivePartitionKey::MIN;
        for partition in &partitions {
            if partition.range.min != expected {
                return Err(IncompleteMap { at: expected.to_hex() });
            }
            expected = partition.range.max.clone();
        }
        if expected != EffectivePartitionKey::MAX {
            return Err(IncompleteMap { at: expected.to_hex() });
        }
        Ok(PartitionMap { partitions })
    }

    /// The partition that owns an effective partition key. Cost: a binary search.
    pub fn owner(&self, key: &EffectivePartitionKey) -> &Partition {
        let above = self.partitions.partition_point(|partition| partition.range.min <= *key);
        &self.partitions[above.saturating_sub(1)]
    }

    /// Finds the partition of an operation's scope. Cost: one hash of the key and a binary search.
    pub fn place(&self, scope: &Scope, definition: &PartitionKeyDefinition) -> Placement {
        match scope {
            Scope::Container => Placement::Unresolved,
            Scope::Key(key) if key.components().len() < definition.paths.len() => {
                match self.overlapping(&prefix_range(definition, key)) {
                    [partition] => Placement::Partition(partition.id, None),
                    _ => Placement::Unresolved,
                }
            }
            Scope::Key(key) => Placement::Partition(self.owner(&effective_key(definition, key)).id, None),
            Scope::Range(range) => match self.overlapping(range) {
                [partition] if partition.range == *range => Placement::Partition(partition.id, None),
                [partition] => Placement::Partition(partition.id, Some(range.clone())),
                _ => Placement::Split,
            },
            // The service responds with 410 if that partition no longer exists.
            Scope::Partition(id) => Placement::Partition(*id, None),
        }
    }

    /// The partitions that overlap an EPK range, in order.
    pub fn overlapping(&self, range: &EpkRange) -> &[Partition] {
        let first = self.partitions.partition_point(|partition| partition.range.max <= range.min);
        let last = self.partitions.partition_point(|partition| partition.range.min < range.max);
        &self.partitions[first.min(last)..last]
    }

    /// The partition with this id, if it still exists.
    pub fn get(&self, id: RangeId) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.id == id)
    }

    /// All partitions, in EPK order.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }
}

#[cfg(test)]
mod tests {
    use protocol::partition::{PartitionKey, even_split};
    use protocol::resource_id::{ContainerRid, DatabaseRid};

    use super::*;

    fn key(hex: &str) -> EffectivePartitionKey {
        EffectivePartitionKey::from_hex(hex).expect("hex")
    }

    fn range(id: u32, min: &str, max: &str, parents: &[u32]) -> PartitionKeyRange {
        let container = ContainerRid { database: DatabaseRid(0), container: 0 };
        let mut range = PartitionKeyRange::new(container, RangeId(id), EpkRange::new(key(min), key(max)));
        range.parents = parents.iter().copied().map(RangeId).collect();
        range
    }

    fn ids(partitions: &[Partition]) -> Vec<u32> {
        partitions.iter().map(|partition| partition.id.0).collect()
    }

    #[test]
    fn every_position_has_one_owner() {
        let map = PartitionMap::new(vec![
            range(1, "55", "AA", &[]),
            range(2, "AA", "FF", &[]),
            range(0, "", "55", &[]),
        ])
        .expect("a complete map");
        for (position, owner) in [("", 0), ("00", 0), ("54FF", 0), ("55", 1), ("A9", 1), ("AA", 2), ("FE", 2)]
        {
            assert_eq!(map.owner(&key(position)).id, RangeId(owner), "{position}");
        }
        for (min, max, owners) in [
            ("", "FF", vec![0, 1, 2]),
            ("55", "AA", vec![1]),
            ("54", "56", vec![0, 1]),
            ("AA", "AB", vec![2]),
            ("AA", "AA", vec![]),
        ] {
            assert_eq!(ids(map.overlapping(&EpkRange::new(key(min), key(max)))), owners, "{min}..{max}");
        }
        assert_eq!(map.get(RangeId(1)).map(|partition| partition.id), Some(RangeId(1)));
        assert_eq!(map.get(RangeId(9)), None);
    }

    #[test]
    fn a_parent_that_is_still_listed_does_not_count() {
        let map = PartitionMap::new(vec![
            range(0, "", "FF", &[]),
            range(1, "", "80", &[0]),
            range(2, "80", "FF", &[0]),
        ])
        .expect("a complete map");
        assert_eq!(ids(map.partitions()), [1, 2]);
    }

    #[test]
    fn ranges_that_do_not_cover_the_epk_space_are_an_error_with_the_position() {
        for (ranges, at) in [
            (vec![], ""),
            (vec![range(1, "", "80", &[])], "80"),
            (vec![range(1, "80", "FF", &[])], ""),
            (vec![range(1, "", "80", &[]), range(2, "90", "FF", &[])], "80"),
            (vec![range(1, "", "80", &[]), range(2, "70", "FF", &[])], "80"),
        ] {
            assert_eq!(PartitionMap::new(ranges), Err(IncompleteMap { at: at.to_owned() }));
        }
    }

    fn even_map(definition: &PartitionKeyDefinition, count: usize) -> PartitionMap {
        let container = ContainerRid { database: DatabaseRid(0), container: 0 };
        let ranges = even_split(definition, count).into_iter().zip(0..);
        let listed =
            ranges.map(|(range, id)| PartitionKeyRange::new(container, RangeId(id), range)).collect();
        PartitionMap::new(listed).expect("a complete map")
    }

    #[test]
    fn a_key_is_in_the_partition_that_owns_its_hash() {
        let definition = PartitionKeyDefinition::hash("/pk").expect("a path");
        let map = even_map(&definition, 2);
        let key = Scope::Key(PartitionKey::single("redmond"));
        assert_eq!(map.place(&key, &definition), Placement::Partition(RangeId(1), None));
        assert_eq!(map.place(&Scope::Container, &definition), Placement::Unresolved);
        let by_id = map.place(&Scope::Partition(RangeId(7)), &definition);
        assert_eq!(by_id, Placement::Partition(RangeId(7), None));
    }

    #[test]
    fn an_epk_range_is_in_one_partition_or_has_to_be_divided() {
        let definition = PartitionKeyDefinition::hash("/pk").expect("a path");
        let map = even_map(&definition, 2);
        let second = map.partitions()[1].range.clone();
        let part = EpkRange::new(second.min.clone(), EffectivePartitionKey::from_hex("2F").expect("hex"));
        for (range, expected) in [
            (second.clone(), Placement::Partition(RangeId(1), None)),
            (part.clone(), Placement::Partition(RangeId(1), Some(part))),
            (EpkRange::FULL, Placement::Split),
        ] {
            assert_eq!(map.place(&Scope::Range(range), &definition), expected);
        }
    }
}
