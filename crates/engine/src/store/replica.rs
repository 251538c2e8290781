//! A partition as a request sees it.

use std::sync::Arc;

use arc_swap::Guard;
use protocol::lsn::Lsn;

use super::head::Head;
use super::partition::Partition;
use super::reach::Progress;
use super::state::PartitionState;
use crate::regions::ReadContext;

/// A partition as one region sees it, or as it was.
#[derive(Clone)]
pub struct PartitionView {
    partition: Arc<Partition>,
    vantage: ReadContext,
    /// What it sees whatever happens.
    pinned: Option<Arc<PartitionState>>,
}

impl PartitionView {
    pub fn new(partition: Arc<Partition>, vantage: ReadContext) -> PartitionView {
        PartitionView { partition, vantage, pinned: None }
    }

    /// A partition as it was.
    pub(crate) fn pinned(
        partition: Arc<Partition>,
        vantage: ReadContext,
        state: Arc<PartitionState>,
    ) -> PartitionView {
        PartitionView { partition, vantage, pinned: Some(state) }
    }

    /// The same partition as it was at `lsn`, if that is still known.
    pub fn at(&self, lsn: Lsn) -> Option<PartitionView> {
        let mut state = PartitionState::clone(&self.snapshot());
        if !state.log.holds(lsn) || lsn > state.lsn {
            return None;
        }
        state.go_back(lsn);
        Some(PartitionView::pinned(self.partition(), self.vantage, Arc::new(state)))
    }

    /// The partition itself.
    pub fn partition(&self) -> Arc<Partition> {
        Arc::clone(&self.partition)
    }

    /// The items by identity, for a short look. Never waits, whatever writers are doing.
    pub fn head(&self) -> Guard<Arc<Head>> {
        self.partition.head(self.vantage)
    }

    /// The whole state, to keep. May wait for a write in progress, and for nothing else.
    pub fn snapshot(&self) -> Arc<PartitionState> {
        match &self.pinned {
            Some(state) => Arc::clone(state),
            None => self.partition.snapshot(self.vantage),
        }
    }

    /// How far it is. Asked after a snapshot was taken, it says at least what that holds.
    pub fn progress(&self) -> Progress {
        let reach = self.head().progress();
        match &self.pinned {
            Some(state) => Progress { lsn: state.lsn, ..reach },
            None => reach,
        }
    }
}

impl std::ops::Deref for PartitionView {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}
