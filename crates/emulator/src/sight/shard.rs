//! What the requests of a few threads came to.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

use super::histogram::Histogram;
use super::request::Sighting;
use engine::regions::RegionId;

/// Kinds of answers that are told apart for one operation; rules can make up more.
const STATUSES_MAX: usize = 64;
/// Partitions that are told apart.
const PARTITIONS_MAX: usize = 2_000;
/// Stands for the statuses and containers beyond those.
pub(crate) const OTHER: &str = "other";
/// The same, where a status is a number.
pub(crate) const OTHER_STATUS: u16 = u16::MAX;

/// The share of some threads.
#[derive(Debug, Default)]
pub(super) struct Shard {
    requests: VecDeque<Sighting>,
    operations: HashMap<OperationKey, OperationCounts, RandomState>,
    /// By container, so that a look-up borrows its name.
    partitions: HashMap<Box<str>, Ranges, RandomState>,
    partition_count: usize,
}

/// What the partitions of one container came to.
type Ranges = HashMap<(RegionId, u32), PartitionCounts, RandomState>;

/// An operation in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OperationKey {
    pub(crate) region: RegionId,
    pub(crate) operation: &'static str,
}

/// What it came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperationCounts {
    pub(crate) latency: Histogram,
    pub(crate) charge: f64,
    /// By status and sub-status; [`OTHER_STATUS`] for those beyond the most that are told apart.
    pub(crate) statuses: Vec<((u16, u32), u64)>,
}

/// A partition in a region.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartitionKey {
    /// `dbs/{database}/colls/{container}`, or [`OTHER`].
    pub(crate) container: Box<str>,
    pub(crate) region: RegionId,
    pub(crate) range: u32,
}

/// What it came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartitionCounts {
    pub(crate) latency: Histogram,
    pub(crate) charge: f64,
    pub(crate) throttled: u64,
}

impl PartitionCounts {
    fn add(&mut self, sighting: &Sighting) {
        self.latency.observe(sighting.took);
        self.charge += sighting.charge;
        self.throttled += u64::from(sighting.status == 429);
    }
}

/// Everything that was counted, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) operations: BTreeMap<OperationKey, OperationCounts>,
    pub(crate) partitions: BTreeMap<PartitionKey, PartitionCounts>,
}

impl Shard {
    pub(super) fn write_down(&mut self, mut sighting: Sighting, next: &AtomicU64, kept: usize) {
        sighting.number = next.fetch_add(1, Ordering::Relaxed);
        let key = OperationKey { region: sighting.region, operation: sighting.operation };
        let counts = self.operations.entry(key).or_default();
        counts.latency.observe(sighting.took);
        counts.charge += sighting.charge;
        add_status(&mut counts.statuses, (sighting.status, sighting.sub_status), 1);
        if let (Some(container), Some(range)) = (sighting.served_by(), sighting.range()) {
            let key = (sighting.region, range);
            match self.partitions.get_mut(container).and_then(|ranges| ranges.get_mut(&key)) {
                Some(counts) => counts.add(&sighting),
                None => self.partition(container, sighting.region, range).add(&sighting),
            }
        }
        while self.requests.len() >= kept.max(1) {
            self.requests.pop_front();
        }
        if kept > 0 {
            self.requests.push_back(sighting);
        }
    }

    /// The counts of a partition, made if they are not there yet.
    fn partition(&mut self, container: &str, region: RegionId, range: u32) -> &mut PartitionCounts {
        let known =
            self.partitions.get(container).is_some_and(|ranges| ranges.contains_key(&(region, range)));
        let (container, key) = match known || self.partition_count < PARTITIONS_MAX {
            true => (container, (region, range)),
            false => (OTHER, (region, 0)),
        };
        if !self.partitions.contains_key(container) {
            self.partitions.insert(container.into(), HashMap::default());
        }
        let ranges = self.partitions.get_mut(container).expect("just made sure of");
        if !known {
            self.partition_count += usize::from(!ranges.contains_key(&key));
        }
        ranges.entry(key).or_default()
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = &Sighting> {
        self.requests.iter()
    }

    pub(super) fn add_to(&self, counts: &mut Counts) {
        for (key, own) in &self.operations {
            let sum = counts.operations.entry(*key).or_default();
            sum.latency.add(&own.latency);
            sum.charge += own.charge;
            for (status, count) in &own.statuses {
                add_status(&mut sum.statuses, *status, *count);
            }
        }
        for (container, ranges) in &self.partitions {
            for ((region, range), own) in ranges {
                let key = PartitionKey { container: container.clone(), region: *region, range: *range };
                let sum = counts.partitions.entry(key).or_default();
                sum.latency.add(&own.latency);
                sum.charge += own.charge;
                sum.throttled += own.throttled;
            }
        }
    }

    pub(super) fn forget_containers(&mut self, exists: impl Fn(&str) -> bool) {
        self.partitions.retain(|container, _| &**container == OTHER || exists(container));
        self.partition_count = self.partitions.values().map(HashMap::len).sum();
    }
}

/// Most operations end in a few ways, the usual one first.
fn add_status(statuses: &mut Vec<((u16, u32), u64)>, status: (u16, u32), count: u64) {
    let room = statuses.len() < STATUSES_MAX;
    if let Some((_, counted)) = statuses.iter_mut().find(|(known, _)| *known == status) {
        *counted += count;
    } else if room {
        statuses.push((status, count));
    } else if let Some((_, counted)) = statuses.iter_mut().find(|(known, _)| known.0 == OTHER_STATUS) {
        *counted += count;
    } else {
        statuses.push(((OTHER_STATUS, 0), count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_beyond_the_most_are_counted_together() {
        let mut statuses = Vec::new();
        for sub_status in 0..200 {
            add_status(&mut statuses, (503, sub_status), 1);
        }
        assert_eq!(statuses.len(), STATUSES_MAX + 1);
        assert_eq!(statuses.last(), Some(&((OTHER_STATUS, 0), 200 - STATUSES_MAX as u64)));
    }

    #[test]
    fn partitions_beyond_the_most_are_counted_together() {
        let mut shard = Shard::default();
        for range in 0..PARTITIONS_MAX as u32 + 50 {
            shard.partition("dbs/d/colls/c", RegionId(0), range).throttled += 1;
        }
        shard.partition("dbs/d/colls/c", RegionId(0), 7).throttled += 1;
        let mut counts = Counts::default();
        shard.add_to(&mut counts);
        assert_eq!(counts.partitions.len(), PARTITIONS_MAX + 1);
        let of = |container: &str, range| {
            counts.partitions[&PartitionKey { container: container.into(), region: RegionId(0), range }]
                .throttled
        };
        assert_eq!((of(OTHER, 0), of("dbs/d/colls/c", 7)), (50, 2));
    }
}
