//! A partition as one request reads it.

use std::sync::Arc;

use arc_swap::Guard;
use protocol::lsn::Lsn;

use super::Partition;
use crate::regions::ReadContext;
use crate::store::replica::head::Head;
use crate::store::replica::progress::Progress;
use crate::store::replica::state::PartitionState;

/// A partition through a read context, or pinned to an earlier state.
#[derive(Clone)]
pub struct PartitionView {
    partition: Arc<Partition>,
    read: ReadContext,
    /// The state it always shows, if it is pinned.
    pinned: Option<Arc<PartitionState>>,
}

impl PartitionView {
    /// The partition as `read` may see it.
    pub fn new(partition: Arc<Partition>, read: ReadContext) -> PartitionView {
        PartitionView { partition, read, pinned: None }
    }

    /// The partition in an earlier state.
    pub(crate) fn pinned(
        partition: Arc<Partition>,
        read: ReadContext,
        state: Arc<PartitionState>,
    ) -> PartitionView {
        PartitionView { partition, read, pinned: Some(state) }
    }

    /// The partition as it was at `lsn`, if its change log still reaches back to it.
    pub fn at(&self, lsn: Lsn) -> Option<PartitionView> {
        let mut state = PartitionState::clone(&self.snapshot());
        if !state.log.contains_lsn(lsn) || lsn > state.lsn {
            return None;
        }
        state.roll_back(lsn);
        Some(PartitionView::pinned(self.partition(), self.read, Arc::new(state)))
    }

    /// The partition behind the view.
    pub fn partition(&self) -> Arc<Partition> {
        Arc::clone(&self.partition)
    }

    /// The items by id. Never waits for a writer.
    pub fn head(&self) -> Guard<Arc<Head>> {
        self.partition.head(self.read)
    }

    /// The whole state. May wait for a write in progress.
    pub fn snapshot(&self) -> Arc<PartitionState> {
        match &self.pinned {
            Some(state) => Arc::clone(state),
            None => self.partition.snapshot(self.read),
        }
    }

    /// The progress of the replica. After a snapshot was taken, it covers at least that snapshot.
    pub fn progress(&self) -> Progress {
        let progress = self.head().progress();
        match &self.pinned {
            Some(state) => Progress { lsn: state.lsn, ..progress },
            None => progress,
        }
    }
}

impl std::ops::Deref for PartitionView {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}
