//! A container: its rules and its partitions, in the order of the ring.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use protocol::container::ContainerProperties;
use protocol::partition::{EffectivePartitionKey, EpkRange, even_split};
use protocol::resource_id::ContainerRid;
use thiserror::Error;

use super::contents::Contents;
use super::layout::Layout;
use super::partition::{
    Closed, LSN_FIRST, Partition, PartitionIdentity, Surroundings, WriteContext, WriteOutcome,
    first_token_version,
};
use super::reach::VersionVector;
use super::replica::PartitionView;
use super::restore::{self, Place};
use super::schema::ContainerSchema;
use super::transaction::Transaction;
use crate::disk::{Disk, DiskError, ItemsRead, KeptLayout, Malformed, in_parallel};
use crate::regions::{ReadContext, RegionId, Regions};

/// No range.
const NONE: u64 = u64::MAX;

/// How a container is cut into partitions.
#[derive(Clone, Copy, Debug)]
pub struct Partitioning {
    /// How many there are at first.
    pub count: usize,
    /// Bytes one holds before it is split.
    pub bytes_max: u64,
}

#[cfg(test)]
impl Partitioning {
    /// So many, of any size.
    pub(crate) fn of(count: usize) -> Partitioning {
        Partitioning { count, bytes_max: u64::MAX }
    }
}

/// The data of one container.
pub struct Container {
    pub(super) rid: ContainerRid,
    schema: ArcSwap<ContainerSchema>,
    /// Contiguous and sorted: together they cover the ring.
    pub(super) partitions: ArcSwap<Vec<Arc<Partition>>>,
    pub(super) layout: Mutex<Layout>,
    /// The id of a range that holds too much.
    overfull: AtomicU64,
    pub(super) surroundings: Surroundings,
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container")
            .field("rid", &self.rid)
            .field("usage", &self.usage())
            .finish_non_exhaustive()
    }
}

/// Why nothing can be written just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteUnavailable {
    /// Too much is on its way to a region that does not take it.
    #[error(
        "A region is too far behind to be told about another write; resume its replication, or try again later."
    )]
    ReplicationBacklogFull,
    /// A region is staler than bounded staleness allows.
    #[error(
        "A region is staler than the account's bounded staleness allows, and writes wait until it has caught up; resume its replication."
    )]
    StalenessExceeded,
    /// The partition is written in another region.
    #[error("The requested operation cannot be performed in this region: another one writes this partition.")]
    NotWriteRegion,
}

/// What a container holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub items: u64,
    pub bytes: u64,
}

impl Container {
    /// An empty container of `partitions` equal ranges.
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
        let mut contents = Contents::empty(&schema, LSN_FIRST);
        if regions.current().is_multi_write() {
            contents.head.versions = VersionVector::none_of(regions.current().len());
        }
        let token_version = first_token_version(&regions);
        let (ordinals, bytes_max) = (Arc::new(AtomicU64::new(1)), partitions.bytes_max);
        let surroundings = Surroundings { regions, ordinals, bytes_max, disk };
        let partition = |(range, id)| {
            let identity = PartitionIdentity::new(id, rid, token_version);
            Arc::new(Partition::new(identity, range, Vec::new(), contents.clone(), surroundings.clone()))
        };
        let partitions = ranges.into_iter().zip(0..).map(partition).collect();
        Container {
            rid,
            schema: ArcSwap::new(schema),
            partitions: ArcSwap::from_pointee(partitions),
            layout,
            overfull: AtomicU64::new(NONE),
            surroundings,
        }
    }

    /// Whether a range holds more than it should.
    pub(crate) fn is_oversized(&self, id: u32) -> bool {
        let partition = self.partition_numbered(id);
        partition.is_some_and(|partition| partition.latest_head().bytes() > self.surroundings.bytes_max)
    }

    /// The range that has come to hold more than it should, if one has. Told once.
    pub fn take_oversized(&self) -> Option<u32> {
        if self.overfull.load(Ordering::Relaxed) == NONE {
            return None;
        }
        u32::try_from(self.overfull.swap(NONE, Ordering::Relaxed)).ok()
    }

    /// A container with what was read from disk in it. Grows with the items; uses every core.
    pub(crate) fn restored(
        rid: ContainerRid,
        properties: &ContainerProperties,
        place: &Place,
        kept: (KeptLayout, ItemsRead),
    ) -> Result<Container, Malformed> {
        let schema = Arc::new(ContainerSchema::of(properties));
        let (layout, read) = kept;
        let ordinals = Arc::new(AtomicU64::new(read.next_ordinal));
        let Place { regions, disk, bytes_max } = place.clone();
        let surroundings = Surroundings { regions, ordinals, bytes_max, disk: Some(disk) };
        let partitions = restore::partitions(rid, &schema, &layout, read, &surroundings)?;
        Ok(Container {
            rid,
            schema: ArcSwap::new(schema),
            partitions: ArcSwap::from_pointee(partitions),
            layout: Mutex::new(Layout::restored(&layout)),
            surroundings,
            overfull: AtomicU64::new(NONE),
        })
    }

    /// Makes the index of what was read from disk, for whoever searches. Grows with the items.
    pub(crate) fn make_index(&self) {
        let partitions = self.partitions();
        in_parallel(partitions.len(), |at| partitions[at].make_index());
    }

    /// How many regions have a copy.
    pub fn regions(&self) -> usize {
        self.surroundings.regions.current().len()
    }

    /// The rules in force.
    pub fn schema(&self) -> Guard<Arc<ContainerSchema>> {
        self.schema.load()
    }

    pub(super) fn set_schema(&self, schema: Arc<ContainerSchema>) {
        self.schema.store(schema);
    }

    /// All partitions, in the order of the ring.
    pub fn partitions(&self) -> Arc<Vec<Arc<Partition>>> {
        self.partitions.load_full()
    }

    /// Runs `work` as one transaction of the partition that owns `epk`, whichever that is by then.
    pub fn write<T, E: From<DiskError>>(
        &self,
        epk: &EffectivePartitionKey,
        moment: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<(Arc<Partition>, WriteOutcome<T, E>), WriteUnavailable> {
        let mut work = Some(work);
        loop {
            let partition = self.partition_of(epk);
            let written = partition.write(moment, |transaction| {
                let work = work.take().expect("a partition that takes no write does not begin");
                work(transaction)
            });
            match written {
                Ok(commit) => {
                    if partition.latest_head().bytes() > self.surroundings.bytes_max {
                        self.overfull.store(partition.identity.id.into(), Ordering::Relaxed);
                    }
                    return Ok((partition, commit));
                }
                Err(Closed::Retired) => std::hint::spin_loop(),
                Err(Closed::TooFarBehind) => return Err(WriteUnavailable::ReplicationBacklogFull),
                Err(Closed::TooStale) => return Err(WriteUnavailable::StalenessExceeded),
                Err(Closed::Elsewhere) => return Err(WriteUnavailable::NotWriteRegion),
            }
        }
    }

    /// The partition that owns a position on the ring.
    pub fn partition_of(&self, epk: &EffectivePartitionKey) -> Arc<Partition> {
        let partitions = self.partitions.load();
        let after = partitions.partition_point(|partition| partition.range.min <= *epk);
        Arc::clone(&partitions[after.saturating_sub(1)])
    }

    /// The partition with this range id, if it is live.
    pub fn partition(&self, id: &str) -> Option<Arc<Partition>> {
        self.partition_numbered(id.parse().ok()?)
    }

    /// The same, by number.
    pub(crate) fn partition_numbered(&self, id: u32) -> Option<Arc<Partition>> {
        self.partitions.load().iter().find(|partition| partition.identity.id == id).cloned()
    }

    /// The partitions that own a part of `range`, in the order of the ring, as seen from `read_context`.
    pub fn views_over(&self, range: &EpkRange, vantage: ReadContext) -> Vec<PartitionView> {
        let partitions = self.partitions.load();
        let over = partitions.iter().filter(|partition| partition.range.overlaps(range));
        over.map(|partition| PartitionView::new(Arc::clone(partition), vantage)).collect()
    }

    /// Removes what has expired, so that its removal is part of the log. Ends when nothing is left to
    /// remove, or when it cannot be removed now.
    pub fn purge_expired(&self, partition: &PartitionView, moment: WriteContext) {
        if partition.snapshot().expired(moment.now).next().is_none() {
            return;
        }
        let topology = self.surroundings.regions.current();
        let account_writes =
            if topology.takes_item_writes(moment.region) { moment.region } else { topology.hub() };
        drop(topology);
        let region = partition.partition().write_region().unwrap_or(account_writes);
        let moment = WriteContext { region, ..moment };
        // Every write begins with a purge; these do nothing else.
        let purge =
            || self.write(&partition.range.min, moment, |purge| Ok::<bool, DiskError>(purge.has_changes()));
        while matches!(purge(), Ok((_, WriteOutcome { result: Ok(true), .. }))) {}
    }

    /// Takes on replaced properties: new rules for writes, and an index made anew.
    pub(crate) fn replace_properties(&self, properties: &ContainerProperties) {
        let schema = Arc::new(ContainerSchema::of(properties));
        // No partition is split meanwhile, so that none is left under the old rules.
        let _layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        for partition in self.partitions.load().iter() {
            partition.adopt(&schema);
        }
        self.schema.store(schema);
    }

    /// Lets a region see everything at once.
    pub(crate) fn catch_up(&self, region: RegionId) {
        self.each_partition(|partition| partition.catch_up(region));
    }

    /// Keeps what a region sees now.
    pub(crate) fn pause(&self, region: RegionId, uptime: Duration) {
        self.each_partition(|partition| partition.pause(region, uptime));
    }

    /// Lets a region that was paused see everything, at `due`.
    pub(crate) fn resume(&self, region: RegionId, uptime: Duration, due: Duration) {
        self.each_partition(|partition| partition.resume(region, uptime, due));
    }

    /// Tells every partition something. None is split or merged meanwhile: what comes of it would not have
    /// been told.
    fn each_partition(&self, work: impl FnMut(&Arc<Partition>)) {
        let _layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        self.partitions.load().iter().for_each(work);
    }

    /// What it holds now.
    pub fn usage(&self) -> Usage {
        self.partitions.load().iter().fold(Usage::default(), |usage, partition| {
            let state = partition.latest_head();
            Usage { items: usage.items + state.len() as u64, bytes: usage.bytes + state.bytes() }
        })
    }
}
