//! What one write region holds of a partition, and the messages it has sent and applied.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::version_chain::VersionChain;
use crate::store::replication::message::ItemKey;
use crate::store::replication::queue::ReplicationQueue;
use crate::store::replication::stored::StoredReplica;

/// The replica of one write region.
pub(super) struct RegionReplica {
    pub(super) chain: VersionChain,
    pub(super) queue: ReplicationQueue,
    /// How many of the region's own changes of each item the hub has not decided on yet.
    unresolved: Mutex<HashMap<ItemKey, u32>>,
    /// The number of the last message it sent. Changes under its write guard.
    pub(super) sent: AtomicU64,
    /// The number of the last of the hub's messages that it has applied. Changes under its write guard, after
    /// the step was persisted.
    pub(super) applied: AtomicU64,
}

impl RegionReplica {
    pub(super) fn new(contents: ReplicaContents) -> RegionReplica {
        RegionReplica {
            chain: VersionChain::new(contents.head, contents.state),
            queue: ReplicationQueue::new(),
            unresolved: Mutex::default(),
            sent: AtomicU64::new(0),
            applied: AtomicU64::new(0),
        }
    }

    pub(super) fn unresolved(&self) -> MutexGuard<'_, HashMap<ItemKey, u32>> {
        self.unresolved.lock()
    }

    /// Records how many own changes of an item the hub still has to decide on.
    pub(super) fn set_unresolved(&self, key: &ItemKey, left: u32) {
        match left {
            0 => drop(self.unresolved().remove(key)),
            left => drop(self.unresolved().insert(key.clone(), left)),
        }
    }

    /// What the disk stores of its progress, with this head and this number of the last conflict.
    pub(super) fn to_stored(&self, head: &Head, conflicts: u64) -> StoredReplica {
        // Relaxed: both change under the write guard, which every caller holds.
        let (sent, applied) = (self.sent.load(Ordering::Relaxed), self.applied.load(Ordering::Relaxed));
        StoredReplica { sent, applied, conflicts, versions: head.versions.clone() }
    }
}
