//! A partition as a request sees it.

use std::sync::Arc;

use arc_swap::Guard;
use protocol::lsn::Lsn;

use super::head::Head;
use super::partition::Partition;
use super::reach::Reach;
use super::state::State;
use crate::regions::Vantage;

/// A partition as one region sees it, or as it was.
#[derive(Clone)]
pub struct Replica {
    partition: Arc<Partition>,
    vantage: Vantage,
    /// What it sees whatever happens.
    pinned: Option<Arc<State>>,
}

impl Replica {
    pub fn new(partition: Arc<Partition>, vantage: Vantage) -> Replica {
        Replica { partition, vantage, pinned: None }
    }

    /// A partition as it was.
    pub(crate) fn pinned(partition: Arc<Partition>, vantage: Vantage, state: Arc<State>) -> Replica {
        Replica { partition, vantage, pinned: Some(state) }
    }

    /// The same partition as it was at `lsn`, if that is still known.
    pub fn at(&self, lsn: Lsn) -> Option<Replica> {
        let mut state = State::clone(&self.snapshot());
        if !state.log.holds(lsn) || lsn > state.lsn {
            return None;
        }
        state.go_back(lsn);
        Some(Replica::pinned(self.partition(), self.vantage, Arc::new(state)))
    }

    /// The partition itself.
    pub fn partition(&self) -> Arc<Partition> {
        Arc::clone(&self.partition)
    }

    /// The items by identity, for a short look. Never waits, whatever writers are doing.
    pub fn peek(&self) -> Guard<Arc<Head>> {
        self.partition.peek(self.vantage)
    }

    /// The whole state, to keep. May wait for a write in progress, and for nothing else.
    pub fn snapshot(&self) -> Arc<State> {
        match &self.pinned {
            Some(state) => Arc::clone(state),
            None => self.partition.snapshot(self.vantage),
        }
    }

    /// How far it is. Asked after a snapshot was taken, it says at least what that holds.
    pub fn reach(&self) -> Reach {
        let reach = self.peek().reach();
        match &self.pinned {
            Some(state) => Reach { lsn: state.lsn, ..reach },
            None => reach,
        }
    }
}

impl std::ops::Deref for Replica {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}
