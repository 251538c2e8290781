//! The replicas of a partition in an account where every region writes.
//!
//! Each region has a version chain of its own and serves requests from it at once. What it commits is
//! *tentative*: a replication message carries it to the hub, which resolves conflicts in the order of
//! arrival and broadcasts the version that won. A region shows its own tentative version of an item until
//! the hub's decision arrives, and the hub's version otherwise; once every message is applied, all replicas
//! equal the hub's.
//!
//! Nothing runs in the background. A request first applies the messages that are due (`apply`): at the hub,
//! because decisions are made there, and then at the region it reads.
//!
//! In an account with a data directory every applied message is one journal record: the item change, the
//! replica's progress, and the messages it sends or completes (`stored`). A step that cannot be persisted is
//! not made, and its message stays in the queue.

mod apply;
mod region_replica;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::Guard;
use parking_lot::{Mutex, MutexGuard};

use self::region_replica::RegionReplica;
use crate::disk::{Batch, DiskError, Keyspace, ReplicationEntry};
use crate::items::{Change, ChangeKind};
use crate::regions::{ReadContext, RegionId, Topology};
use crate::store::partition::{Partition, WriteBlocked, WriteContext, WriteOutcome};
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::state::PartitionState;
use crate::store::replica::version_chain::{VersionChain, WriteGuard};
use crate::store::replication::conflicts::Conflicts;
use crate::store::replication::context::ReplicationContext;
use crate::store::replication::message::ReplicationMessage;
use crate::store::replication::replica_set::ReplicaSet;
use crate::store::replication::stored::StoredReplicas;
use crate::store::transaction::Transaction;

/// The region that resolves conflicts: the first in failover order, which never changes where all write.
const HUB: RegionId = RegionId(0);
/// Messages in flight to one region, at most; beyond that writers are rejected.
const MESSAGES_MAX: usize = 100_000;
/// Messages to each region that a writer applies after its own commit while the partition is being replaced.
const MESSAGES_PER_WRITE: u64 = 2;

/// One replica per region, the hub's first.
pub(in crate::store) struct MultiWriteReplicas {
    replicas: Vec<RegionReplica>,
    conflicts: Mutex<Conflicts>,
    /// The hub's messages up to this number are no longer on disk: every region has applied them.
    released: AtomicU64,
}

impl MultiWriteReplicas {
    /// Replicas that all hold `contents`.
    pub(in crate::store) fn new(contents: &ReplicaContents, regions: usize) -> MultiWriteReplicas {
        let replicas = (0..regions).map(|_| RegionReplica::new(contents.clone())).collect();
        MultiWriteReplicas { replicas, conflicts: Mutex::default(), released: AtomicU64::new(0) }
    }

    /// Replicas with these contents, one for each region, with nothing in flight between them.
    pub(in crate::store) fn of(contents: Vec<ReplicaContents>, conflicts: Conflicts) -> MultiWriteReplicas {
        let replicas = contents.into_iter().map(RegionReplica::new).collect();
        MultiWriteReplicas { replicas, conflicts: Mutex::new(conflicts), released: AtomicU64::new(0) }
    }

    /// The replicas that were on disk, `contents` for each region. Messages that were in flight are sent
    /// again. Nothing else sees the replicas yet, so relaxed orderings suffice.
    pub(in crate::store) fn restored(
        context: &ReplicationContext<'_>,
        contents: Vec<ReplicaContents>,
        stored: StoredReplicas,
    ) -> MultiWriteReplicas {
        let StoredReplicas { replicas: stored, messages, conflicts } = stored;
        let last = stored.get(&HUB.0).map_or(0, |hub| hub.conflicts);
        let replicas: Vec<RegionReplica> = contents.into_iter().map(RegionReplica::new).collect();
        for (region, replica) in (0..).zip(&replicas) {
            if let Some(stored) = stored.get(&region) {
                replica.sent.store(stored.sent, Ordering::Relaxed);
                replica.applied.store(stored.applied, Ordering::Relaxed);
            }
        }
        let oldest = messages.keys().find(|(from, _)| *from == HUB.0).map(|(_, number)| *number);
        let released =
            oldest.map_or(replicas[0].sent.load(Ordering::Relaxed), |oldest| oldest.saturating_sub(1));
        for ((from, number), message) in messages {
            let from = RegionId(from);
            let receivers =
                (0..).map(RegionId).zip(&replicas).filter(|(region, replica)| match from == HUB {
                    true => *region != HUB && replica.applied.load(Ordering::Relaxed) < number,
                    false => *region == HUB,
                });
            for (region, replica) in receivers {
                if message.origin == region && region != HUB {
                    *replica.unresolved().entry(message.key.clone()).or_default() += 1;
                }
                replica.queue.send(from, context.due_after_restart(from, region), message.clone());
            }
            if let Some(sender) = replicas.get(from.index()).filter(|_| from != HUB) {
                *sender.unresolved().entry(message.key.clone()).or_default() += 1;
            }
        }
        let conflicts = Mutex::new(Conflicts::restored(conflicts, last));
        MultiWriteReplicas { replicas, conflicts, released: AtomicU64::new(released) }
    }

    fn hub(&self) -> &RegionReplica {
        &self.replicas[0]
    }

    /// The replica of a region. A region that was just added may ask a partition that is being replaced and has
    /// none for it: nothing is in flight there and no write is accepted any more, so the hub's replica will do.
    fn replica(&self, region: RegionId) -> &RegionReplica {
        self.replicas.get(region.index()).unwrap_or_else(|| self.hub())
    }

    /// The replicas of all regions but the hub.
    fn followers(&self) -> impl Iterator<Item = (RegionId, &RegionReplica)> {
        (1..).map(RegionId).zip(&self.replicas[1..])
    }

    /// Whether some region's queue takes no further message.
    fn is_backlog_full(&self) -> bool {
        self.replicas.iter().any(|replica| replica.queue.len() >= MESSAGES_MAX)
    }

    /// The messages about changes that are about to be committed at `region`, under its write guard.
    fn messages_about(
        &self,
        region: RegionId,
        changes: &[Arc<Change>],
        commit: u64,
    ) -> Vec<ReplicationMessage> {
        // An item that expired in one region expires in all of them.
        let changes = changes.iter().filter(|change| change.kind != ChangeKind::Expire);
        let mut messages: Vec<ReplicationMessage> =
            changes.flat_map(|change| ReplicationMessage::about(change, region, commit)).collect();
        // Relaxed: `sent` changes under the write guard alone, which is held here.
        let first = self.replica(region).sent.load(Ordering::Relaxed) + 1;
        (first..).zip(&mut messages).for_each(|(number, message)| message.number = number);
        messages
    }

    /// Sends messages, under the write guard that committed the changes they are about.
    fn send(&self, context: &ReplicationContext<'_>, region: RegionId, messages: Vec<ReplicationMessage>) {
        let replica = self.replica(region);
        // Relaxed: `sent` changes under the write guard alone, which is held here.
        replica.sent.fetch_add(messages.len() as u64, Ordering::Relaxed);
        for message in messages {
            if region == HUB {
                self.broadcast(context, context.uptime, &message);
            } else {
                *replica.unresolved().entry(message.key.clone()).or_default() += 1;
                self.hub().queue.send(region, context.due(region, HUB, context.uptime), message);
            }
        }
    }

    /// Commits a transaction at the region of `write`. None if the partition has been replaced.
    fn commit<T, E: From<DiskError>>(
        &self,
        context: &ReplicationContext<'_>,
        write: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Option<WriteOutcome<T, E>> {
        let region = write.region;
        let replica = self.replica(region);
        self.drain(context, region);
        let mut guard = replica.chain.write_guard();
        if guard.is_replaced() {
            return None;
        }
        let mut head = Head::clone(&guard.head());
        let (before, number) = (head.progress(), head.versions.of(region) + 1);
        head.versions = head.versions.with(region, number);
        let mut transaction =
            Transaction::new(head, guard.state(), context.identity, context.ordinals, write.now)
                .in_region(region);
        let result = work(&mut transaction);
        let Some(outcome) = transaction.finish().filter(|_| result.is_ok()) else {
            return Some(WriteOutcome { result, progress: before, quorum_at: Duration::ZERO });
        };
        let messages = self.messages_about(region, &outcome.changes, number);
        let persisted = context.persist(|batch| {
            context.put_outcome(batch, region, guard.state(), &outcome);
            let last = self.conflicts.lock().last();
            let mut stored = replica.to_stored(&outcome.head, if region == HUB { last } else { 0 });
            stored.sent += messages.len() as u64;
            context.put_replica(batch, region, &stored);
            messages.iter().for_each(|message| context.put_message(batch, region, message));
        });
        if let Err(error) = persisted {
            return Some(WriteOutcome {
                result: Err(error.into()),
                progress: before,
                quorum_at: Duration::ZERO,
            });
        }
        let head = guard.commit(outcome);
        self.send(context, region, messages);
        drop(guard);
        if self.hub().chain.writers_help() {
            // A message that cannot be persisted now stays queued; the split or merge that closes the
            // partition tries again and reports the error.
            let _ = self.apply_some(context, MESSAGES_PER_WRITE);
        }
        Some(WriteOutcome { result, progress: head.progress(), quorum_at: Duration::ZERO })
    }
}

impl ReplicaSet for MultiWriteReplicas {
    fn head(&self, partition: &Partition, read: ReadContext) -> Guard<Arc<Head>> {
        partition.with_replication(read.uptime, |context| self.drain(context, read.region));
        self.replica(read.region).chain.head()
    }

    fn snapshot(&self, partition: &Partition, read: ReadContext) -> Arc<PartitionState> {
        partition.with_replication(read.uptime, |context| self.drain(context, read.region));
        self.replica(read.region).chain.snapshot()
    }

    /// The hub's chain, without applying anything.
    fn primary(&self) -> &VersionChain {
        &self.hub().chain
    }

    fn chain(&self, number: usize) -> Option<&VersionChain> {
        self.replicas.get(number).map(|replica| &replica.chain)
    }

    fn write<T, E: From<DiskError>>(
        &self,
        partition: &Partition,
        write: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<WriteOutcome<T, E>, WriteBlocked> {
        if self.is_backlog_full() {
            return Err(WriteBlocked::ReplicationBacklogFull);
        }
        let committed = partition.with_replication(write.uptime, |context| self.commit(context, write, work));
        committed.ok_or(WriteBlocked::Replaced)
    }

    /// A message to the region or to the hub may wait for half of the allowed interval: the other half is for
    /// the two lags it takes.
    fn is_too_stale(
        &self,
        partition: &Partition,
        topology: &Topology,
        region: RegionId,
        uptime: Duration,
    ) -> bool {
        partition.with_replication(uptime, |context| self.drain(context, region));
        let waited = uptime.checked_sub(topology.staleness.interval / 2);
        waited
            .is_some_and(|since| self.replica(region).queue.has_due(since) || self.hub().queue.has_due(since))
    }

    fn set_replica(&mut self, region: RegionId, contents: ReplicaContents) {
        if let Some(replica) = self.replicas.get_mut(region.index()) {
            replica.chain = VersionChain::new(contents.head, contents.state);
        }
    }

    fn deliver_all(&self, partition: &Partition, guards: &mut [WriteGuard<'_>]) -> Result<(), DiskError> {
        partition.with_replication(Duration::ZERO, |context| self.apply_all(context, guards))
    }

    fn deliver_some(&self, partition: &Partition, messages_max: u64) -> Result<u64, DiskError> {
        partition.with_replication(Duration::ZERO, |context| self.apply_some(context, messages_max))
    }

    fn pending_messages(&self) -> u64 {
        self.replicas.iter().map(|replica| replica.queue.len() as u64).sum()
    }

    fn put_replicas(&self, partition: &Partition, batch: &mut Batch) {
        partition.with_replication(Duration::ZERO, |context| {
            let conflicts = self.conflicts.lock();
            for (region, replica) in (0..).map(RegionId).zip(&self.replicas) {
                let last = if region == HUB { conflicts.last() } else { 0 };
                context.put_replica(batch, region, &replica.to_stored(&replica.chain.head(), last));
            }
            for conflict in conflicts.all() {
                let key = context.key(ReplicationEntry::Conflict(conflict.number));
                batch.put(Keyspace::Replication, &key, |to| conflict.put(to));
            }
        });
    }

    fn conflicts(&self) -> Option<MutexGuard<'_, Conflicts>> {
        Some(self.conflicts.lock())
    }

    fn remove_conflict(&self, partition: &Partition, number: u64) -> Result<bool, DiskError> {
        let mut conflicts = self.conflicts.lock();
        if conflicts.contains(number) {
            partition.with_replication(Duration::ZERO, |context| {
                let key = context.key(ReplicationEntry::Conflict(number));
                context.persist(|batch| batch.remove(Keyspace::Replication, &key))
            })?;
        }
        Ok(conflicts.remove(number))
    }
}
