//! A physical partition: a range of effective partition keys, with its items in every region.
//!
//! Reading and writing are here; the replicas that a request meets are chosen by its [`ReadContext`] or
//! [`WriteContext`] (`replication`). What is done to a partition besides is in `maintenance`.

mod maintenance;
mod split_marks;
pub(in crate::store) mod view;
mod write_region;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use arc_swap::Guard;
use bytes::Bytes;
use parking_lot::MutexGuard;
use protocol::account::ConsistencyLevel;
use protocol::lsn::Lsn;
use protocol::partition::EpkRange;
use protocol::resource_id::{ContainerRid, ItemRid};

pub use self::split_marks::SplitMark;
use self::split_marks::SplitMarks;
use self::write_region::WriteRegion;
use crate::charge::PartitionThroughput;
use crate::disk::{ChainKey, Disk, DiskError, Malformed, ReplicationEntry, ReplicationKey};
use crate::items::Ordinal;
use crate::regions::{ReadContext, RegionId, Regions, StalenessBound};
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::progress::{Progress, VersionVector};
use crate::store::replica::state::PartitionState;
use crate::store::replica::version_chain::VersionChain;
use crate::store::replication::conflicts::Conflicts;
use crate::store::replication::context::ReplicationContext;
use crate::store::replication::multi_write::MultiWriteReplicas;
use crate::store::replication::replica_set::Replicas;
use crate::store::replication::stored::StoredReplicas;
use crate::store::transaction::Transaction;

/// The LSN of a partition that has not been written to.
pub(in crate::store) const LSN_FIRST: Lsn = Lsn(1);
/// The session token version of a partition that was never merged, where one region writes.
const TOKEN_VERSION_FIRST: i64 = -1;
/// The session token version of a partition that was never merged, where tokens name regions.
pub(in crate::store) const TOKEN_VERSION_FIRST_MULTI_WRITE: i64 = 1;

/// A physical partition of a container.
pub struct Partition {
    /// The range id and session token version.
    pub identity: PartitionIdentity,
    /// The effective partition keys it owns.
    pub range: EpkRange,
    /// The ids of the ranges it descends from, oldest first.
    pub parents: Vec<u32>,
    /// Its token buckets and usage counters.
    pub throughput: PartitionThroughput,
    /// What clients are told while it is being split or merged.
    split_marks: SplitMarks,
    /// The region that takes its writes, where partitions fail over one by one.
    write_region: WriteRegion,
    replicas: Replicas,
    pub(in crate::store) context: ContainerContext,
}

/// What the partitions of a container share.
#[derive(Clone)]
pub(in crate::store) struct ContainerContext {
    pub(in crate::store) regions: Arc<Regions>,
    /// The ordinal that the next item of the container gets.
    pub(in crate::store) ordinals: Arc<AtomicU64>,
    /// Bytes a partition holds before it is split.
    pub(in crate::store) bytes_max: u64,
    /// The data directory, if the account has one.
    pub(in crate::store) disk: Option<Arc<Disk>>,
    /// The newest journal record with a commit of the container.
    pub(in crate::store) newest_record: Arc<AtomicU64>,
}

/// The ids that a partition's items and session tokens carry.
#[derive(Clone, Debug)]
pub struct PartitionIdentity {
    /// The partition key range id, as clients see it.
    pub id: u32,
    /// The version of its session tokens, which grows when partitions merge.
    pub token_version: i64,
    container: ContainerRid,
    /// The container's self link, `dbs/{rid}/colls/{rid}/`.
    pub(in crate::store) container_link: String,
}

impl PartitionIdentity {
    pub(in crate::store) fn new(id: u32, container: ContainerRid, token_version: i64) -> PartitionIdentity {
        PartitionIdentity { id, token_version, container, container_link: container.self_link() }
    }

    /// The disk key of the commits in one of its version chains.
    pub(in crate::store) fn chain_key(&self, chain: u8) -> ChainKey {
        ChainKey { container: self.container, chain, partition: self.id }
    }

    /// The disk key of something stored about its replicas.
    pub(in crate::store) fn replication_key(&self, what: ReplicationEntry) -> ReplicationKey {
        ReplicationKey { container: self.container, partition: self.id, what }
    }

    pub(in crate::store) fn item_rid(&self, ordinal: Ordinal) -> String {
        ItemRid { container: self.container, ordinal: ordinal.0 }.to_string()
    }
}

/// The region and the time of a write.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext {
    /// The region that received the write.
    pub region: RegionId,
    /// The write timestamp, in seconds since the epoch: `_ts`.
    pub now: u64,
    /// The time of the write by the clock that never goes back.
    pub uptime: Duration,
}

/// How a write ended.
pub struct WriteOutcome<T, E> {
    /// What the transaction returned.
    pub result: Result<T, E>,
    /// The replica's progress afterwards: what the session token says.
    pub progress: Progress,
    /// The uptime at which a majority of regions will have the write.
    pub quorum_at: Duration,
}

/// Why a partition takes no write.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::store) enum WriteBlocked {
    /// The partition has been replaced by others.
    Replaced,
    /// The replication queue of another region is full.
    ReplicationBacklogFull,
    /// Another region is staler than bounded staleness allows.
    StalenessExceeded,
    /// The partition is written in another region.
    NotWriteRegion,
}

impl Partition {
    /// A partition that holds `contents` in every region.
    pub(in crate::store) fn new(
        identity: PartitionIdentity,
        range: EpkRange,
        parents: Vec<u32>,
        contents: ReplicaContents,
        context: ContainerContext,
    ) -> Partition {
        let replicas = Replicas::new(contents, &context.regions.current());
        Partition::with_replicas(identity, range, parents, replicas, context)
    }

    /// A partition that was read from disk: `contents` of each version chain, and what was stored about its
    /// replicas where every region writes.
    pub(in crate::store) fn restored(
        identity: PartitionIdentity,
        range: EpkRange,
        parents: Vec<u32>,
        mut contents: Vec<ReplicaContents>,
        stored: &[(ReplicationEntry, Bytes)],
        context: ContainerContext,
    ) -> Result<Partition, Malformed> {
        let topology = Guard::into_inner(context.regions.current());
        if !topology.is_multi_write() {
            let contents = contents.pop().ok_or(Malformed)?;
            return Ok(Partition::new(identity, range, parents, contents, context));
        }
        let stored = StoredReplicas::read(stored, topology.region_count())?;
        for (region, contents) in (0..).zip(&mut contents) {
            let known = stored.replicas.get(&region).map(|replica| replica.versions.clone());
            contents.head.versions = known.unwrap_or_else(|| VersionVector::none_of(topology.region_count()));
        }
        let replication = ReplicationContext {
            topology: &topology,
            identity: &identity,
            ordinals: &context.ordinals,
            disk: None,
            newest_record: &context.newest_record,
            uptime: Duration::ZERO,
        };
        let replicas = MultiWriteReplicas::restored(&replication, contents, stored);
        Ok(Partition::with_replicas(identity, range, parents, Replicas::MultiWrite(replicas), context))
    }

    /// A partition with `replicas` in one write region each, which takes over the conflicts of `old`.
    pub(in crate::store) fn with_write_regions(
        identity: PartitionIdentity,
        (range, parents): (EpkRange, Vec<u32>),
        replicas: Vec<ReplicaContents>,
        old: &Partition,
        context: ContainerContext,
    ) -> Partition {
        let conflicts = old.conflicts().map(|conflicts| conflicts.clone()).unwrap_or_default();
        let replicas = Replicas::MultiWrite(MultiWriteReplicas::of(replicas, conflicts));
        Partition::with_replicas(identity, range, parents, replicas, context)
    }

    fn with_replicas(
        identity: PartitionIdentity,
        range: EpkRange,
        parents: Vec<u32>,
        replicas: Replicas,
        context: ContainerContext,
    ) -> Partition {
        let (throughput, split_marks) = (PartitionThroughput::default(), SplitMarks::default());
        let write_region = WriteRegion::account_default();
        Partition { identity, range, parents, throughput, split_marks, write_region, replicas, context }
    }

    /// Whether it owns a part of `range`, or the start of an empty one.
    pub(crate) fn owns_part_of(&self, range: &EpkRange) -> bool {
        self.range.overlaps(range) || range.is_empty() && self.range.contains(&range.min)
    }

    /// Whether clients are told this, or more, about a split or merge of it.
    pub fn has_split_mark(&self, mark: SplitMark, uptime: Duration) -> bool {
        self.split_marks.has(mark, uptime)
    }

    /// Marks it as being split until an uptime, when the mark ends by itself. Zero removes every mark.
    pub(in crate::store) fn set_split_mark(&self, mark: SplitMark, until: Duration) {
        self.split_marks.set(mark, until);
    }

    /// The items by id that `read` may see. Never waits for a writer.
    pub fn head(&self, read: ReadContext) -> Guard<Arc<Head>> {
        self.replicas.head(self, read)
    }

    /// The whole state that `read` may see.
    pub(crate) fn snapshot(&self, read: ReadContext) -> Arc<PartitionState> {
        self.replicas.snapshot(self, read)
    }

    /// The newest items by id, as the region has them that decides.
    pub fn latest_head(&self) -> Guard<Arc<Head>> {
        self.replicas.primary().head()
    }

    /// The newest state, as the region has it that decides.
    pub fn latest_state(&self) -> Arc<PartitionState> {
        self.replicas.primary().snapshot()
    }

    /// The newest head and state of every version chain.
    #[cfg(test)]
    pub(crate) fn every_chain(&self) -> Vec<(Arc<Head>, Arc<PartitionState>)> {
        self.chains().map(|chain| (Guard::into_inner(chain.head()), chain.snapshot())).collect()
    }

    /// Every version chain, the one that decides first.
    pub(in crate::store) fn chains(&self) -> impl Iterator<Item = &VersionChain> {
        self.replicas.chains()
    }

    /// Runs `work` as one transaction and publishes its changes if it succeeded. `work` runs under the write
    /// guard, so it must not ask for a snapshot.
    pub(in crate::store) fn write<T, E: From<DiskError>>(
        &self,
        write: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<WriteOutcome<T, E>, WriteBlocked> {
        if self.would_exceed_staleness(write) {
            return Err(WriteBlocked::StalenessExceeded);
        }
        self.replicas.write(self, write, work)
    }

    /// The region that takes the partition's writes instead of the account's, if there is one.
    pub fn write_region(&self) -> Option<RegionId> {
        self.write_region.get()
    }

    /// Whether `region` takes the partition's writes.
    pub(in crate::store) fn accepts_writes_from(&self, region: RegionId) -> bool {
        let topology = self.context.regions.current();
        !topology.has_partition_failover() || self.write_region.accepts_writes_from(region, &topology)
    }

    /// `read` as it is at the partition's own write region, which sees everything.
    pub(in crate::store) fn local_read(&self, read: ReadContext) -> ReadContext {
        if self.write_region.get() == Some(read.region) {
            return ReadContext { staleness: StalenessBound::Newest, ..read };
        }
        read
    }

    /// Whether a region lags at `uptime` further than bounded staleness allows, with replication to it paused.
    pub fn is_too_stale(&self, region: RegionId, uptime: Duration) -> bool {
        let topology = self.context.regions.current();
        self.replicas.is_too_stale(self, &topology, region, uptime)
    }

    /// Whether a write has to wait for a paused region that has reached the bounded staleness limit.
    fn would_exceed_staleness(&self, write: WriteContext) -> bool {
        let topology = self.context.regions.current();
        topology.consistency == ConsistencyLevel::BoundedStaleness
            && topology.regions().any(|(id, there)| {
                let waits = id != write.region && there.paused_at.is_some();
                waits && self.is_too_stale(id, write.uptime)
            })
    }

    /// The versions that lost a conflict; none in an account where one region writes.
    pub fn conflicts(&self) -> Option<MutexGuard<'_, Conflicts>> {
        self.replicas.conflicts()
    }

    /// Calls `work` with what replication between write regions needs at `uptime`.
    pub(in crate::store) fn with_replication<T>(
        &self,
        uptime: Duration,
        work: impl FnOnce(&ReplicationContext<'_>) -> T,
    ) -> T {
        let topology = self.context.regions.current();
        let Partition { identity, context, .. } = self;
        let ContainerContext { ordinals, disk, newest_record, .. } = context;
        let (topology, disk) = (&*topology, disk.as_deref());
        work(&ReplicationContext { topology, identity, ordinals, disk, newest_record, uptime })
    }
}

/// The version that session tokens of a new container begin with.
pub(in crate::store) fn first_token_version(regions: &Regions) -> i64 {
    if regions.current().is_multi_write() { TOKEN_VERSION_FIRST_MULTI_WRITE } else { TOKEN_VERSION_FIRST }
}
