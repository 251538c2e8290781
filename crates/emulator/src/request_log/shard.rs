//! One shard of the request log: the records and counts of a few threads.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

use super::histogram::LatencyHistogram;
use super::record::RequestRecord;
use engine::regions::RegionId;

/// Distinct statuses that are counted for one operation; fault rules can produce more.
const STATUSES_MAX: usize = 64;
/// Partitions that are counted separately.
const PARTITIONS_MAX: usize = 2_000;
/// Label of the statuses and containers beyond those limits.
pub(crate) const OTHER: &str = "other";
/// Stands for the statuses beyond the limit where a status is a number.
pub(crate) const OTHER_STATUS: u16 = u16::MAX;

/// The records and counts of a few threads.
#[derive(Debug, Default)]
pub(super) struct Shard {
    requests: VecDeque<RequestRecord>,
    operations: HashMap<OperationKey, OperationCounts, RandomState>,
    /// Keyed by container first, so that a look-up can borrow the name.
    partitions: HashMap<Box<str>, CountsByRange, RandomState>,
    partition_count: usize,
}

/// The counts of one container's partitions, by region and range.
type CountsByRange = HashMap<(RegionId, u32), PartitionCounts, RandomState>;

/// The key of an operation's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OperationKey {
    pub(crate) region: RegionId,
    pub(crate) operation: &'static str,
}

/// The counts of one operation in one region.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperationCounts {
    pub(crate) latency: LatencyHistogram,
    pub(crate) charge: f64,
    /// Counts by status and sub-status; [`OTHER_STATUS`] for those beyond the limit.
    pub(crate) statuses: Vec<((u16, u32), u64)>,
}

/// The key of a partition's counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PartitionKey {
    /// The container as `dbs/{database}/colls/{container}`, or [`OTHER`].
    pub(crate) container: Box<str>,
    pub(crate) region: RegionId,
    pub(crate) range: u32,
}

/// The counts of one partition in one region.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartitionCounts {
    pub(crate) latency: LatencyHistogram,
    pub(crate) charge: f64,
    pub(crate) throttled: u64,
}

impl PartitionCounts {
    fn add(&mut self, record: &RequestRecord) {
        self.latency.record(record.duration);
        self.charge += record.charge;
        self.throttled += u64::from(record.status == 429);
    }
}

/// All counts, sorted by key.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestCounts {
    pub(crate) operations: BTreeMap<OperationKey, OperationCounts>,
    pub(crate) partitions: BTreeMap<PartitionKey, PartitionCounts>,
}

impl Shard {
    pub(super) fn record(&mut self, mut record: RequestRecord, next_number: &AtomicU64, capacity: usize) {
        // Relaxed: the number only has to be unique; the shard's lock orders it for readers.
        record.number = next_number.fetch_add(1, Ordering::Relaxed);
        let key = OperationKey { region: record.region, operation: record.operation };
        let counts = self.operations.entry(key).or_default();
        counts.latency.record(record.duration);
        counts.charge += record.charge;
        add_status(&mut counts.statuses, (record.status, record.sub_status), 1);
        if let (Some(container), Some(range)) = (record.container_path(), record.range()) {
            let key = (record.region, range);
            match self.partitions.get_mut(container).and_then(|ranges| ranges.get_mut(&key)) {
                Some(counts) => counts.add(&record),
                None => self.partition_counts(container, record.region, range).add(&record),
            }
        }
        while self.requests.len() >= capacity.max(1) {
            self.requests.pop_front();
        }
        if capacity > 0 {
            self.requests.push_back(record);
        }
    }

    /// The counts of a partition, created if they are missing.
    fn partition_counts(&mut self, container: &str, region: RegionId, range: u32) -> &mut PartitionCounts {
        let known =
            self.partitions.get(container).is_some_and(|ranges| ranges.contains_key(&(region, range)));
        let (container, key) = match known || self.partition_count < PARTITIONS_MAX {
            true => (container, (region, range)),
            false => (OTHER, (region, 0)),
        };
        if !self.partitions.contains_key(container) {
            self.partitions.insert(container.into(), HashMap::default());
        }
        let ranges = self.partitions.get_mut(container).expect("inserted above");
        if !known {
            self.partition_count += usize::from(!ranges.contains_key(&key));
        }
        ranges.entry(key).or_default()
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = &RequestRecord> {
        self.requests.iter()
    }

    pub(super) fn add_to(&self, counts: &mut RequestCounts) {
        for (key, own) in &self.operations {
            let sum = counts.operations.entry(*key).or_default();
            sum.latency.merge(&own.latency);
            sum.charge += own.charge;
            for (status, count) in &own.statuses {
                add_status(&mut sum.statuses, *status, *count);
            }
        }
        for (container, ranges) in &self.partitions {
            for ((region, range), own) in ranges {
                let key = PartitionKey { container: container.clone(), region: *region, range: *range };
                let sum = counts.partitions.entry(key).or_default();
                sum.latency.merge(&own.latency);
                sum.charge += own.charge;
                sum.throttled += own.throttled;
            }
        }
    }

    pub(super) fn retain_containers(&mut self, exists: impl Fn(&str) -> bool) {
        self.partitions.retain(|container, _| &**container == OTHER || exists(container));
        self.partition_count = self.partitions.values().map(HashMap::len).sum();
    }
}

/// Adds to the count of a status. A list, because most operations have a few statuses, the usual one first.
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
    fn statuses_beyond_the_limit_are_counted_together() {
        let mut statuses = Vec::new();
        for sub_status in 0..200 {
            add_status(&mut statuses, (503, sub_status), 1);
        }
        assert_eq!(statuses.len(), STATUSES_MAX + 1);
        assert_eq!(statuses.last(), Some(&((OTHER_STATUS, 0), 200 - STATUSES_MAX as u64)));
    }

    #[test]
    fn partitions_beyond_the_limit_are_counted_together() {
        let mut shard = Shard::default();
        for range in 0..PARTITIONS_MAX as u32 + 50 {
            shard.partition_counts("dbs/d/colls/c", RegionId(0), range).throttled += 1;
        }
        shard.partition_counts("dbs/d/colls/c", RegionId(0), 7).throttled += 1;
        let mut counts = RequestCounts::default();
        shard.add_to(&mut counts);
        assert_eq!(counts.partitions.len(), PARTITIONS_MAX + 1);
        let of = |container: &str, range| {
            counts.partitions[&PartitionKey { container: container.into(), region: RegionId(0), range }]
                .throttled
        };
        assert_eq!((of(OTHER, 0), of("dbs/d/colls/c", 7)), (50, 2));
    }
}
