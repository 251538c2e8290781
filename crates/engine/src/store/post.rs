//! What it takes to deliver letters between regions that write, and to write down what they do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use protocol::account::ConsistencyLevel;
use protocol::lsn::Lsn;

use super::inbox::Letter;
use super::kept::KeptCopy;
use super::partition::PartitionIdentity;
use super::state::PartitionState;
use super::transaction::Outcome;
use crate::disk::{self, Batch, Disk, DiskError, MeshEntry, Space};
use crate::regions::{RegionId, Topology};

/// The moment after the beginning: later than anything a region has seen that is paused from the start.
const AFTER_START: Duration = Duration::from_nanos(1);

/// The regions as they are, and the partition's own things.
pub(super) struct Post<'a> {
    pub(super) topology: &'a Topology,
    pub(super) identity: &'a PartitionIdentity,
    pub(super) ordinals: &'a AtomicU64,
    /// Where it is kept, if anywhere.
    pub(super) disk: Option<&'a Disk>,
    pub(super) uptime: Duration,
}

impl Post<'_> {
    /// Up to when letters have arrived at a region: time stands still for one that is paused.
    pub(super) fn arrived(&self, region: RegionId) -> Duration {
        self.topology.region(region).paused_at.map_or(self.uptime, |paused| paused.min(self.uptime))
    }

    pub(super) fn due(&self, from: RegionId, to: RegionId, sent: Duration) -> Duration {
        // The same lag for all letters of a pair would do; drawn from the time sent it varies as set.
        let draw = f64::from(sent.subsec_micros() % 1_000) / 1_000.0;
        let lag = self.topology.lag(from, to).at(draw);
        // Two of them, to the hub and from there, take no longer than half of what may be missing.
        let bounded = self.topology.consistency == ConsistencyLevel::BoundedStaleness;
        sent + if bounded { lag.min(self.topology.staleness.interval / 4) } else { lag }
    }

    /// The same, for a letter that was on its way when the account was last closed.
    pub(super) fn due_again(&self, from: RegionId, to: RegionId) -> Duration {
        let due = self.due(from, to, Duration::ZERO);
        // What the hub settles goes on from when it arrived there, to one that is paused perhaps.
        let paused = self.topology.regions().any(|(_, region)| region.paused_at.is_some());
        if paused { due.max(AFTER_START) } else { due }
    }

    /// Writes down what `write` says, as one, where the account is kept.
    pub(super) fn keep(&self, write: impl FnOnce(&mut Batch)) -> Result<(), DiskError> {
        let Some(disk) = self.disk else { return Ok(()) };
        let mut batch = Batch::new(0);
        write(&mut batch);
        disk.append(batch)
    }

    /// The key of something that is kept of the partition's copies.
    pub(super) fn key(&self, what: MeshEntry) -> [u8; 22] {
        self.identity.mesh_key(what).to_bytes()
    }

    /// Adds what a transaction does to the copy of `region`, which is in `state` before it.
    pub(super) fn put_outcome(
        &self,
        batch: &mut Batch,
        region: RegionId,
        state: &PartitionState,
        outcome: &Outcome,
    ) {
        if outcome.changes.is_empty() {
            return;
        }
        let lsn = outcome.head.lsn;
        batch.put_commit(&disk::Commit {
            line: self.identity.line_key(region.0),
            lsn,
            changes: &outcome.changes,
            forgotten: state.log.forgotten(),
            next_ordinal: self.ordinals.load(Ordering::Relaxed),
            after_gap: Lsn(state.log.newest_lsn().0 + 1) != lsn,
        });
    }

    /// Adds how far the copy of `region` is.
    pub(super) fn put_copy(&self, batch: &mut Batch, region: RegionId, copy: &KeptCopy) {
        batch.put(Space::Mesh, &self.key(MeshEntry::Copy(region.0)), |to| copy.put(to));
    }

    /// Adds a letter that `from` sends.
    pub(super) fn put_letter(&self, batch: &mut Batch, from: RegionId, letter: &Letter) {
        let key = self.key(MeshEntry::Letter(from.0, letter.number));
        batch.put(Space::Mesh, &key, |to| letter.put(to));
    }
}
