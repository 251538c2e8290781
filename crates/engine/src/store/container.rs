//! A container: its schema and its physical partitions, in EPK order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use protocol::container::ContainerProperties;
use protocol::partition::{EffectivePartitionKey, EpkRange, even_split};
use protocol::resource_id::ContainerRid;
use thiserror::Error;

use crate::disk::{Disk, DiskError, Malformed, StoredContents, StoredLayout, in_parallel};
use crate::regions::{ReadContext, RegionId, Regions};
use crate::store::partition::view::PartitionView;
use crate::store::partition::{
    ContainerContext, LSN_FIRST, Partition, PartitionIdentity, SplitMark, WriteBlocked, WriteContext,
    WriteOutcome, first_token_version,
};
use crate::store::repartition::layout::Layout;
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::progress::VersionVector;
use crate::store::schema::ContainerSchema;
use crate::store::snapshot::load::{self, RestoreContext};
use crate::store::transaction::Transaction;

/// The value of `oversized` while no partition is.
const NONE: u64 = u64::MAX;

/// How a container is divided into physical partitions.
#[derive(Clone, Copy, Debug)]
pub struct Partitioning {
    /// The initial number of partitions.
    pub count: usize,
    /// Bytes a partition holds before it is split.
    pub bytes_max: u64,
}

#[cfg(test)]
impl Partitioning {
    /// This number of partitions, of any size.
    pub(crate) fn of(count: usize) -> Partitioning {
        Partitioning { count, bytes_max: u64::MAX }
    }
}

/// A container: its partitions and the schema in force.
pub struct Container {
    pub(super) rid: ContainerRid,
    schema: ArcSwap<ContainerSchema>,
    /// Contiguous and in EPK order: together they cover the whole EPK space.
    pub(super) partitions: ArcSwap<Vec<Arc<Partition>>>,
    pub(super) layout: Mutex<Layout>,
    /// The id of a range that has outgrown its limit, or [`NONE`].
    oversized: AtomicU64,
    /// How often a range was marked as being split.
    split_marks_set: AtomicU64,
    pub(super) context: ContainerContext,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container")
            .field("rid", &self.rid)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

/// Why a container accepts no writes just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteUnavailable {
    /// The replication queue of a region that does not apply its messages is full.
    #[error(
        "A region is too far behind to be told about another write; resume its replication, or try again later."
    )]
    ReplicationBacklogFull,
    /// A region has reached the limit of bounded staleness.
    #[error(
        "A region is staler than the account's bounded staleness allows, and writes wait until it has caught up; resume its replication."
    )]
    StalenessExceeded,
    /// Another region takes the partition's writes.
    #[error("The requested operation cannot be performed in this region: another one writes this partition.")]
    NotWriteRegion,
}

/// How much a container holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The number of items.
    pub items: u64,
    /// The bytes of all items.
    pub bytes: u64,
}

impl Container {
    /// An empty container, divided into equal ranges.
    pub(crate) fn new(
        rid: ContainerRid,
        properties: &ContainerProperties,
        partitions: Partitioning,
        regions: Arc<Regions>,
        disk: Option<Arc<Disk>>,
    ) -> Container {
        let schema = Arc::new(ContainerSchema::of(properties));
        let ranges = even_split(&schema.partition_key, partitions.count.max(1));
        let layout = Mutex::new(Layout::after(ranges.len()));
        let mut contents = ReplicaContents::empty(&schema, LSN_FIRST);
        if regions.current().is_multi_write() {
            contents.head.versions = VersionVector::none_of(regions.current().region_count());
        }
        let token_version = first_token_version(&regions);
        let (ordinals, bytes_max) = (Arc::new(AtomicU64::new(1)), partitions.bytes_max);
        let context = ContainerContext { regions, ordinals, bytes_max, disk, newest_record: Arc::default() };
        let partition = |(range, id)| {
            let identity = PartitionIdentity::new(id, rid, token_version);
            Arc::new(Partition::new(identity, range, Vec::new(), contents.clone(), context.clone()))
        };
        let partitions = ranges.into_iter().zip(0..).map(partition).collect();
        Container {
            rid,
            schema: ArcSwap::new(schema),
            partitions: ArcSwap::from_pointee(partitions),
            layout,
            oversized: AtomicU64::new(NONE),
            split_marks_set: AtomicU64::new(0),
            context,
        }
    }

    /// Whether a range holds more bytes than a partition should.
    pub(crate) fn is_oversized(&self, id: u32) -> bool {
        let partition = self.partition_by_id(id);
        partition.is_some_and(|partition| partition.latest_head().bytes() > self.context.bytes_max)
    }

    /// Takes the id of a range that has outgrown its limit, if there is one. Each is returned once.
    pub fn take_oversized(&self) -> Option<u32> {
        // Relaxed: the id is all there is to see. The load spares the common case a write to the cache line.
        if self.oversized.load(Ordering::Relaxed) == NONE {
            return None;
        }
        u32::try_from(self.oversized.swap(NONE, Ordering::Relaxed)).ok()
    }

    /// The container that was stored on disk. Cost grows with the items; uses every core.
    pub(crate) fn restored(
        rid: ContainerRid,
        properties: &ContainerProperties,
        from: &RestoreContext,
        stored: (StoredLayout, StoredContents),
    ) -> Result<Container, Malformed> {
        let schema = Arc::new(ContainerSchema::of(properties));
        let (layout, read) = stored;
        let ordinals = Arc::new(AtomicU64::new(read.next_ordinal));
        let RestoreContext { regions, disk, bytes_max } = from.clone();
        let context = ContainerContext {
            regions,
            ordinals,
            bytes_max,
            disk: Some(disk),
            newest_record: Arc::default(),
        };
        let partitions = load::partitions(rid, &schema, &layout, read, &context)?;
        Ok(Container {
            rid,
            schema: ArcSwap::new(schema),
            partitions: ArcSwap::from_pointee(partitions),
            layout: Mutex::new(Layout::restored(&layout)),
            context,
            oversized: AtomicU64::new(NONE),
            split_marks_set: AtomicU64::new(0),
        })
    }

    /// Builds the index of what was read from disk, which queries wait for. Cost grows with the items.
    pub(crate) fn build_index(&self) {
        let partitions = self.partitions();
        in_parallel(partitions.len(), |at| partitions[at].build_index());
    }

    /// How many regions have a replica.
    pub fn regions(&self) -> usize {
        self.context.regions.current().region_count()
    }

    /// How many version chains each partition has.
    pub(super) fn chain_count(&self) -> usize {
        let topology = self.context.regions.current();
        if topology.is_multi_write() { topology.region_count() } else { 1 }
    }

    /// The schema in force.
    pub fn schema(&self) -> Guard<Arc<ContainerSchema>> {
        self.schema.load()
    }

    pub(super) fn set_schema(&self, schema: Arc<ContainerSchema>) {
        self.schema.store(schema);
    }

    /// The newest journal record with a commit of its items: what a response that shows them waits for.
    pub fn newest_record(&self) -> &AtomicU64 {
        &self.context.newest_record
    }

    /// All partitions, in EPK order.
    pub fn partitions(&self) -> Arc<Vec<Arc<Partition>>> {
        self.partitions.load_full()
    }

    /// Runs `work` as one transaction of the partition that owns `epk`. If that partition is replaced
    /// meanwhile, its successor takes the write.
    pub fn write<T, E: From<DiskError>>(
        &self,
        epk: &EffectivePartitionKey,
        write: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(Arc<Partition>, WriteOutcome<T, E>), WriteUnavailable> {
        let mut work = Some(work);
        loop {
            let partition = self.partition_of(epk);
            let written = partition.write(write, |transaction| {
                let work = work.take().expect("a partition that takes no write does not begin");
                work(transaction)
            });
            match written {
                Ok(commit) => {
                    if partition.latest_head().bytes() > self.context.bytes_max {
                        // Relaxed: a hint to split, which needs no other data and may come late.
                        self.oversized.store(partition.identity.id.into(), Ordering::Relaxed);
                    }
                    return Ok((partition, commit));
                }
                // Ends at once: the successors were published before the partition was marked as replaced, so
                // the next lookup finds one of them.
                Err(WriteBlocked::Replaced) => std::hint::spin_loop(),
                Err(WriteBlocked::ReplicationBacklogFull) => {
                    return Err(WriteUnavailable::ReplicationBacklogFull);
                }
                Err(WriteBlocked::StalenessExceeded) => return Err(WriteUnavailable::StalenessExceeded),
                Err(WriteBlocked::NotWriteRegion) => return Err(WriteUnavailable::NotWriteRegion),
            }
        }
    }

    /// The partition that owns an effective partition key.
    pub fn partition_of(&self, epk: &EffectivePartitionKey) -> Arc<Partition> {
        let partitions = self.partitions.load();
        let after = partitions.partition_point(|partition| partition.range.min <= *epk);
        Arc::clone(&partitions[after.saturating_sub(1)])
    }

    /// The partition with this range id, if it is live.
    pub fn partition(&self, id: &str) -> Option<Arc<Partition>> {
        self.partition_by_id(id.parse().ok()?)
    }

    /// The partition with this numeric range id, if it is live.
    pub(crate) fn partition_by_id(&self, id: u32) -> Option<Arc<Partition>> {
        self.partitions.load().iter().find(|partition| partition.identity.id == id).cloned()
    }

    /// Marks a range as being split until an uptime, when the mark ends by itself. Returns whether it exists.
    pub(crate) fn set_split_mark(&self, id: u32, mark: SplitMark, until: Duration) -> bool {
        let Some(partition) = self.partition_by_id(id) else { return false };
        // Before the mark: a list of ranges that shows the mark has a number that no list before it had.
        self.split_marks_set.fetch_add(1, Ordering::Release);
        partition.set_split_mark(mark, until);
        true
    }

    /// A number that changes whenever a range begins or ceases to be shown as splitting; zero while none is.
    pub fn split_marks(&self, uptime: Duration) -> u64 {
        let partitions = self.partitions.load();
        let shown = partitions.iter().any(|partition| partition.has_split_mark(SplitMark::Announced, uptime));
        // Acquire pairs with the release above.
        if shown { self.split_marks_set.load(Ordering::Acquire) } else { 0 }
    }

    /// The id of a range that owns a part of `range` and is being swapped.
    pub fn swapping_range(&self, range: &EpkRange, uptime: Duration) -> Option<u32> {
        let partitions = self.partitions.load();
        let mut over = partitions.iter().filter(|partition| partition.owns_part_of(range));
        over.find(|partition| partition.has_split_mark(SplitMark::Swapping, uptime))
            .map(|partition| partition.identity.id)
    }

    /// Views of the partitions that own a part of `range`, in EPK order; of an empty range, the one at its start.
    pub fn views_over(&self, range: &EpkRange, read: ReadContext) -> Vec<PartitionView> {
        let partitions = self.partitions.load();
        let over = partitions.iter().filter(|partition| partition.owns_part_of(range));
        over.map(|partition| PartitionView::new(Arc::clone(partition), read)).collect()
    }

    /// Deletes expired items, so that their deletion is part of the change log. Ends when none are left, or
    /// when they cannot be deleted now.
    pub fn purge_expired(&self, partition: &PartitionView, write: WriteContext) {
        if partition.snapshot().expired(write.now).next().is_none() {
            return;
        }
        let topology = self.context.regions.current();
        let account_writes =
            if topology.takes_item_writes(write.region) { write.region } else { topology.hub() };
        drop(topology);
        let region = partition.partition().write_region().unwrap_or(account_writes);
        let write = WriteContext { region, ..write };
        // Every write begins by deleting some expired items; these writes do nothing else.
        let purge = || {
            self.write(&partition.range.min, write, |transaction| {
                Ok::<bool, DiskError>(transaction.has_changes())
            })
        };
        while matches!(purge(), Ok((_, WriteOutcome { result: Ok(true), .. }))) {}
    }

    /// Applies replaced properties: a new schema for writes, and a rebuilt index.
    pub(crate) fn replace_properties(&self, properties: &ContainerProperties) {
        let schema = Arc::new(ContainerSchema::of(properties));
        // Held so that no partition is split meanwhile and left under the old schema.
        let _layout = self.layout.lock();
        for partition in self.partitions.load().iter() {
            partition.apply_schema(&schema);
        }
        self.schema.store(schema);
    }

    /// Lets a region see the newest version of every partition at once.
    pub(crate) fn catch_up(&self, region: RegionId) {
        self.for_each_partition(|partition| partition.catch_up(region));
    }

    /// Fixes what a region sees now, because replication to it is paused.
    pub(crate) fn pause(&self, region: RegionId, uptime: Duration) {
        self.for_each_partition(|partition| partition.pause(region, uptime));
    }

    /// Lets a region whose replication was paused see everything at `due`.
    pub(crate) fn resume(&self, region: RegionId, uptime: Duration, due: Duration) {
        self.for_each_partition(|partition| partition.resume(region, uptime, due));
    }

    /// Calls `work` with every partition, under the layout lock: a partition that is split or merged
    /// meanwhile would miss it.
    fn for_each_partition(&self, work: impl FnMut(&Arc<Partition>)) {
        let _layout = self.layout.lock();
        self.partitions.load().iter().for_each(work);
    }

    /// The items and bytes that it holds now.
    pub fn usage(&self) -> Usage {
        self.partitions.load().iter().fold(Usage::default(), |usage, partition| {
            let state = partition.latest_head();
            Usage { items: usage.items + state.len() as u64, bytes: usage.bytes + state.bytes() }
        })
    }
}
