//! What replication between write regions needs: the topology, the time, and a way to the journal.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use protocol::account::ConsistencyLevel;
use protocol::lsn::Lsn;

use super::message::ReplicationMessage;
use super::stored::StoredReplica;
use crate::disk::{self, Batch, Disk, DiskError, Keyspace, ReplicationEntry};
use crate::regions::{RegionId, Topology};
use crate::store::partition::PartitionIdentity;
use crate::store::replica::state::PartitionState;
use crate::store::transaction::TransactionOutcome;

/// Later than everything that a region has received whose replication is paused from the start.
const AFTER_START: Duration = Duration::from_nanos(1);

/// The topology as it is now, and what a partition needs to apply and persist commits.
pub(in crate::store) struct ReplicationContext<'a> {
    pub(in crate::store) topology: &'a Topology,
    pub(in crate::store) identity: &'a PartitionIdentity,
    pub(in crate::store) ordinals: &'a AtomicU64,
    /// The data directory, if the account has one.
    pub(in crate::store) disk: Option<&'a Disk>,
    /// The newest journal record with a commit of the container.
    pub(in crate::store) newest_record: &'a AtomicU64,
    pub(in crate::store) uptime: Duration,
}

impl ReplicationContext<'_> {
    /// Messages that are due by this uptime have arrived at `region`. Time stands still for a paused region.
    pub(in crate::store) fn delivered_until(&self, region: RegionId) -> Duration {
        self.topology.region(region).paused_at.map_or(self.uptime, |paused| paused.min(self.uptime))
    }

    /// When a message arrives that was sent at `sent`.
    pub(in crate::store) fn due(&self, from: RegionId, to: RegionId, sent: Duration) -> Duration {
        // Derived from the time of sending, so that lags vary within their range and runs are repeatable.
        let fraction = f64::from(sent.subsec_micros() % 1_000) / 1_000.0;
        let lag = self.topology.lag(from, to).at(fraction);
        // A change takes two lags, to the hub and from there: together at most half of the allowed interval.
        let bounded = self.topology.consistency == ConsistencyLevel::BoundedStaleness;
        sent + if bounded { lag.min(self.topology.staleness.interval / 4) } else { lag }
    }

    /// When a message arrives that was in flight when the account was last closed.
    pub(in crate::store) fn due_after_restart(&self, from: RegionId, to: RegionId) -> Duration {
        let due = self.due(from, to, Duration::ZERO);
        // The hub's decision is sent when the message is due there, perhaps to a region that is paused.
        let paused = self.topology.regions().any(|(_, region)| region.paused_at.is_some());
        if paused { due.max(AFTER_START) } else { due }
    }

    /// Appends what `write` adds to a batch to the journal, as one record, if the account has one.
    pub(in crate::store) fn persist(&self, write: impl FnOnce(&mut Batch)) -> Result<(), DiskError> {
        let Some(disk) = self.disk else { return Ok(()) };
        let mut batch = Batch::new(0);
        write(&mut batch);
        disk.append_noting(batch, self.newest_record)
    }

    /// The disk key of something stored about the partition's replicas.
    pub(in crate::store) fn key(&self, what: ReplicationEntry) -> [u8; 22] {
        self.identity.replication_key(what).to_bytes()
    }

    /// Adds the changes of a transaction to a batch; `state` is that of the region's replica before it.
    pub(in crate::store) fn put_outcome(
        &self,
        batch: &mut Batch,
        region: RegionId,
        state: &PartitionState,
        outcome: &TransactionOutcome,
    ) {
        if outcome.changes.is_empty() {
            return;
        }
        let lsn = outcome.head.lsn;
        batch.put_commit(&disk::CommitRecord {
            chain: self.identity.chain_key(region.0),
            lsn,
            changes: &outcome.changes,
            trimmed_to: state.log.trimmed_to(),
            // Relaxed: a number, which orders nothing else; this commit's own ordinals were taken before.
            next_ordinal: self.ordinals.load(Ordering::Relaxed),
            after_gap: Lsn(state.log.newest_lsn().0 + 1) != lsn,
        });
    }

    /// Adds the progress of a region's replica to a batch.
    pub(in crate::store) fn put_replica(&self, batch: &mut Batch, region: RegionId, replica: &StoredReplica) {
        let key = self.key(ReplicationEntry::Replica(region.0));
        batch.put(Keyspace::Replication, &key, |to| replica.put(to));
    }

    /// Adds a message that region `from` sends to a batch.
    pub(in crate::store) fn put_message(
        &self,
        batch: &mut Batch,
        from: RegionId,
        message: &ReplicationMessage,
    ) {
        let key = self.key(ReplicationEntry::Message(from.0, message.number));
        batch.put(Keyspace::Replication, &key, |to| message.put(to));
    }
}
