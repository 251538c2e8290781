//! What a partition asks of its replicas, however the account writes.
//!
//! [`ReplicaSet`] is the interface; accounts with one write region and accounts where every region writes
//! implement it. Point reads and writes are dispatched statically through [`Replicas`], because they are
//! what the benchmarks measure; everything else goes through the trait object.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use parking_lot::MutexGuard;

use crate::disk::{Batch, DiskError};
use crate::regions::{ReadContext, RegionId, Topology};
use crate::store::partition::{Partition, WriteBlocked, WriteContext, WriteOutcome};
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::state::PartitionState;
use crate::store::replica::version_chain::{VersionChain, WriteGuard};
use crate::store::replication::conflicts::Conflicts;
use crate::store::replication::follower_view::FollowerView;
use crate::store::replication::multi_write::MultiWriteReplicas;
use crate::store::replication::single_write::SingleWriteReplicas;
use crate::store::transaction::Transaction;

/// The replicas of one partition in all regions.
///
/// A method with a default body is about something that only one kind of account has: follower views
/// exist where one region writes, replication messages and conflicts where every region does.
pub(in crate::store) trait ReplicaSet {
    /// The items by id that `read` may see. Never waits for a writer.
    fn head(&self, partition: &Partition, read: ReadContext) -> Guard<Arc<Head>>;

    /// The whole state that `read` may see. May wait for a write in progress.
    fn snapshot(&self, partition: &Partition, read: ReadContext) -> Arc<PartitionState>;

    /// The version chain that decides: the only one, or the hub's.
    fn primary(&self) -> &VersionChain;

    /// The version chain with this number; the primary has number 0.
    fn chain(&self, number: usize) -> Option<&VersionChain>;

    /// Runs `work` as one transaction, and commits and replicates what it changed if it succeeded.
    fn write<T, E: From<DiskError>>(
        &self,
        partition: &Partition,
        write: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<WriteOutcome<T, E>, WriteBlocked>
    where
        Self: Sized;

    /// Whether `region` lags at `uptime` further than bounded staleness allows and cannot catch up.
    fn is_too_stale(
        &self,
        partition: &Partition,
        topology: &Topology,
        region: RegionId,
        uptime: Duration,
    ) -> bool;

    /// Lets `region` see the newest version at once: it becomes the write region, or has just ceased to be.
    fn catch_up(&self, _region: RegionId) {}

    /// Lets a region whose replication was paused see the newest version at `due`.
    fn resume(&self, _region: RegionId, _uptime: Duration, _due: Duration) {}

    /// Lets every region see `head` at once.
    fn publish_everywhere(&self, _head: &Arc<Head>) {}

    /// The state that a read region sees at `uptime`; none where every region writes.
    fn visible_state(&self, _region: RegionId, _uptime: Duration) -> Option<Arc<PartitionState>> {
        None
    }

    /// When the first commit was made that a read region does not see at `uptime`.
    fn behind_since(&self, _region: RegionId, _uptime: Duration) -> Option<Duration> {
        None
    }

    /// Sets what a read region sees of a partition under construction.
    fn set_follower_view(&mut self, _region: RegionId, _view: FollowerView) {}

    /// Sets what a write region holds of a partition under construction.
    fn set_replica(&mut self, _region: RegionId, _contents: ReplicaContents) {}

    /// Applies every replication message in flight, whatever the lag. `guards` are those of all chains.
    fn deliver_all(&self, _partition: &Partition, _guards: &mut [WriteGuard<'_>]) -> Result<(), DiskError> {
        Ok(())
    }

    /// Applies up to `messages_max` replication messages per region while writers continue. Returns how many
    /// are left.
    fn deliver_some(&self, _partition: &Partition, _messages_max: u64) -> Result<u64, DiskError> {
        Ok(0)
    }

    /// How many replication messages are in flight between the regions.
    fn pending_messages(&self) -> u64 {
        0
    }

    /// Adds to `batch` what the disk stores of the replicas besides items and logs. Nothing may be in flight.
    fn put_replicas(&self, _partition: &Partition, _batch: &mut Batch) {}

    /// The versions that lost a conflict; none where one region writes.
    fn conflicts(&self) -> Option<MutexGuard<'_, Conflicts>> {
        None
    }

    /// Removes a conflict from the conflicts feed. Returns whether it was there.
    fn remove_conflict(&self, _partition: &Partition, _number: u64) -> Result<bool, DiskError> {
        Ok(false)
    }
}

/// The replicas of a partition, in the kind of account it belongs to.
#[expect(
    clippy::large_enum_variant,
    reason = "a partition has one, and a box would cost every point read a lookup"
)]
pub(in crate::store) enum Replicas {
    /// One region writes; the others follow it.
    SingleWrite(SingleWriteReplicas),
    /// Every region writes; the hub resolves conflicts.
    MultiWrite(MultiWriteReplicas),
}

impl Replicas {
    /// Replicas that all hold `contents`.
    pub(in crate::store) fn new(contents: ReplicaContents, topology: &Topology) -> Replicas {
        if topology.is_multi_write() {
            Replicas::MultiWrite(MultiWriteReplicas::new(&contents, topology.region_count()))
        } else {
            Replicas::SingleWrite(SingleWriteReplicas::new(contents))
        }
    }

    /// [`ReplicaSet::head`], without dynamic dispatch: every point read comes through here.
    pub(in crate::store) fn head(&self, partition: &Partition, read: ReadContext) -> Guard<Arc<Head>> {
        match self {
            Replicas::SingleWrite(replicas) => replicas.head(partition, read),
            Replicas::MultiWrite(replicas) => replicas.head(partition, read),
        }
    }

    /// [`ReplicaSet::primary`], without dynamic dispatch: every write looks at it.
    pub(in crate::store) fn primary(&self) -> &VersionChain {
        match self {
            Replicas::SingleWrite(replicas) => replicas.primary(),
            Replicas::MultiWrite(replicas) => replicas.primary(),
        }
    }

    /// [`ReplicaSet::write`], which is generic and so has no dynamic form.
    pub(in crate::store) fn write<T, E: From<DiskError>>(
        &self,
        partition: &Partition,
        write: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<WriteOutcome<T, E>, WriteBlocked> {
        match self {
            Replicas::SingleWrite(replicas) => replicas.write(partition, write, work),
            Replicas::MultiWrite(replicas) => replicas.write(partition, write, work),
        }
    }

    /// Every version chain, the primary first.
    pub(in crate::store) fn chains(&self) -> impl Iterator<Item = &VersionChain> {
        (0..).map_while(|number| self.chain(number))
    }
}

impl Deref for Replicas {
    type Target = dyn ReplicaSet;

    fn deref(&self) -> &Self::Target {
        match self {
            Replicas::SingleWrite(replicas) => replicas,
            Replicas::MultiWrite(replicas) => replicas,
        }
    }
}

impl DerefMut for Replicas {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Replicas::SingleWrite(replicas) => replicas,
            Replicas::MultiWrite(replicas) => replicas,
        }
    }
}
