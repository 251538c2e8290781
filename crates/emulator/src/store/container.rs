//! A container: its rules and its partitions, in the order of the ring.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arc_swap::ArcSwap;
use protocol::container::ContainerProperties;
use protocol::partition::{EffectivePartitionKey, EpkRange, even_split};
use protocol::resource_id::ContainerRid;

use super::partition::Partition;
use super::schema::Schema;

/// The data of one container.
pub(crate) struct Container {
    rid: ContainerRid,
    schema: ArcSwap<Schema>,
    /// Contiguous and sorted: together they cover the ring.
    partitions: ArcSwap<Vec<Arc<Partition>>>,
    next_ordinal: AtomicU64,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container")
            .field("rid", &self.rid)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

/// What a container holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
}

impl Container {
    /// An empty container of `partitions` equal ranges.
    pub(crate) fn new(rid: ContainerRid, properties: &ContainerProperties, partitions: usize) -> Container {
        let schema = Arc::new(Schema::of(properties));
        let ranges = even_split(&schema.partition_key, partitions.max(1));
        let partitions = ranges
            .into_iter()
            .zip(0..)
            .map(|(range, id)| Arc::new(Partition::new(id, rid, range, Arc::clone(&schema))))
            .collect();
        Container {
            rid,
            schema: ArcSwap::new(schema),
            partitions: ArcSwap::from_pointee(partitions),
            next_ordinal: AtomicU64::new(1),
        }
    }

    /// The rules in force.
    pub(crate) fn schema(&self) -> Arc<Schema> {
        self.schema.load_full()
    }

    /// All partitions, in the order of the ring.
    pub(crate) fn partitions(&self) -> Arc<Vec<Arc<Partition>>> {
        self.partitions.load_full()
    }

    /// Where the next item's number comes from.
    pub(crate) fn ordinals(&self) -> &AtomicU64 {
        &self.next_ordinal
    }

    /// The partition that owns a position on the ring.
    pub(crate) fn partition_of(&self, epk: &EffectivePartitionKey) -> Arc<Partition> {
        let partitions = self.partitions.load();
        let after = partitions.partition_point(|partition| partition.range.min <= *epk);
        Arc::clone(&partitions[after.saturating_sub(1)])
    }

    /// The partition with this range id, if it is live.
    pub(crate) fn partition(&self, id: &str) -> Option<Arc<Partition>> {
        let id: u32 = id.parse().ok()?;
        self.partitions.load().iter().find(|partition| partition.identity.id == id).cloned()
    }

    /// The partitions that own a part of `range`, in the order of the ring.
    pub(crate) fn partitions_over(&self, range: &EpkRange) -> Vec<Arc<Partition>> {
        self.partitions.load().iter().filter(|partition| partition.range.overlaps(range)).cloned().collect()
    }

    /// Removes what has expired, so that its removal is part of the log.
    pub(crate) fn purge_expired(&self, partition: &Partition, now: u64) {
        while partition.snapshot().expired(now).next().is_some() {
            // Every write begins with a purge; this one does nothing else.
            let (_, purged) =
                partition.write(&self.next_ordinal, now, |_| Ok::<(), std::convert::Infallible>(()));
            let Ok(()) = purged;
        }
    }

    /// Takes on replaced properties: new rules for writes, and an index made anew.
    pub(crate) fn replace_properties(&self, properties: &ContainerProperties) {
        let schema = Arc::new(Schema::of(properties));
        for partition in self.partitions.load().iter() {
            partition.adopt(&schema);
        }
        self.schema.store(schema);
    }

    /// What it holds now.
    pub(crate) fn usage(&self) -> Usage {
        self.partitions.load().iter().fold(Usage::default(), |usage, partition| {
            let state = partition.peek();
            Usage { items: usage.items + state.len() as u64, bytes: usage.bytes + state.bytes() }
        })
    }
}
