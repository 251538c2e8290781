//! Position on the ring → physical partition.
//!
//! Built from the `pkranges` feed. Pure: reading the feed again after a split is the cache's job.

use protocol::partition::{EffectivePartitionKey, EpkRange};
use protocol::partition_range::{PartitionKeyRange, RangeId};

/// One physical partition and what it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Its number.
    pub id: RangeId,
    /// The stretch of the ring it owns.
    pub range: EpkRange,
    /// The ranges it came from, all the way back.
    pub parents: Vec<RangeId>,
}

/// All physical partitions of a container, in the order of the ring, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionMap {
    partitions: Vec<Partition>,
}

/// Ranges that do not make up a ring: what was listed while a split was under way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the partition ranges of the container leave a gap or overlap at {at}; list them again")]
pub struct IncompleteMap {
    /// Where, as the service writes positions.
    pub at: String,
}

impl PartitionMap {
    /// The map of a feed's entries, in whatever order. A range that others name as their parent is gone.
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

    /// The partition that owns a position. Cost: a binary search.
    pub fn owner(&self, key: &EffectivePartitionKey) -> &Partition {
        let above = self.partitions.partition_point(|partition| partition.range.min <= *key);
        &self.partitions[above.saturating_sub(1)]
    }

    /// The partitions that own some of a stretch, in order.
    pub fn overlapping(&self, range: &EpkRange) -> &[Partition] {
        let first = self.partitions.partition_point(|partition| partition.range.max <= range.min);
        let last = self.partitions.partition_point(|partition| partition.range.min < range.max);
        &self.partitions[first.min(last)..last]
    }

    /// The partition of this number, if it is alive.
    pub fn get(&self, id: RangeId) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.id == id)
    }

    /// All partitions, in order.
    pub fn partitions(&self) -> &[Partition] {
        &self.partitions
    }
}

#[cfg(test)]
mod tests {
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
        .expect("a ring");
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
        .expect("a ring");
        assert_eq!(ids(map.partitions()), [1, 2]);
    }

    #[test]
    fn what_does_not_make_a_ring_is_refused_with_the_place() {
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
}
