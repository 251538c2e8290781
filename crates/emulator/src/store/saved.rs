//! A container as it was: kept for as long as somebody wants it back.
//!
//! Saving takes each partition's snapshot, which costs nothing however much it holds; what is written
//! afterwards is written beside it. LSNs only go forward: a restored container continues after the LSN
//! it had, so that no session token and no entity tag ever means two things.

use std::sync::{Arc, PoisonError};

use protocol::lsn::Lsn;
use protocol::partition::EpkRange;

use super::container::Container;
use super::contents::Contents;
use super::head::Head;
use super::partition::{Identity, Partition};
use super::reach::Progress;
use super::replica::Replica;
use super::state::State;
use crate::regions::Vantage;

/// The partitions of a container at one moment.
#[derive(Clone)]
pub(crate) struct SavedContainer {
    partitions: Vec<SavedPartition>,
}

#[derive(Clone)]
struct SavedPartition {
    partition: Arc<Partition>,
    head: Arc<Head>,
    state: Arc<State>,
}

impl SavedContainer {
    /// The partitions that own a part of `range`, as they were.
    pub(crate) fn replicas_over(&self, range: &EpkRange, vantage: Vantage) -> Vec<Replica> {
        let over = self.partitions.iter().filter(|saved| saved.partition.range.overlaps(range));
        over.map(|saved| Replica::pinned(Arc::clone(&saved.partition), vantage, Arc::clone(&saved.state)))
            .collect()
    }

    /// How many items it holds.
    pub(crate) fn items(&self) -> u64 {
        self.partitions.iter().map(|saved| saved.head.len() as u64).sum()
    }
}

impl Container {
    /// Keeps everything as it is now. Costs the same whatever it holds; grows with the partitions.
    pub(crate) fn save(&self) -> SavedContainer {
        let _layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let save = |partition: &Arc<Partition>| {
            // Waits for the index of what was read from disk, which a turn does not.
            partition.newest_snapshot();
            let turn = &mut partition.close()[0];
            SavedPartition { partition: Arc::clone(partition), head: turn.head(), state: turn.snapshot() }
        };
        SavedContainer { partitions: self.partitions.load().iter().map(save).collect() }
    }

    /// Makes everything as it was. Costs as little as saving it. Readers that have begun see what was
    /// there before; those that begin afterwards, in whichever region, see what was saved.
    pub(crate) fn restore(&self, saved: &SavedContainer) {
        let mut layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.partitions.load_full();
        let mut turns: Vec<_> = current.iter().map(|partition| partition.close()).collect();
        let newest = turns.iter().flatten().map(|turn| turn.state().lsn).max().unwrap_or_default();
        if let Some(first) = saved.partitions.first() {
            self.set_schema(Arc::clone(&first.state.schema));
        }
        let unchanged = current.len() == saved.partitions.len()
            && current.iter().zip(&saved.partitions).all(|(now, then)| Arc::ptr_eq(now, &then.partition));
        if unchanged {
            for (turns, (partition, saved)) in turns.iter_mut().zip(current.iter().zip(&saved.partitions)) {
                let progress = turns[0].head().reach().progress;
                partition.replace(turns, &saved.after(newest, progress));
            }
            return;
        }
        // The ranges are others by now: those of before come back under new ids.
        let version = current.iter().map(|partition| partition.identity.token_version).max().unwrap_or(-1);
        let made = saved.partitions.iter().map(|saved| {
            let progress = turns.iter().map(|turns| turns[0].head().reach().progress);
            let contents = saved.after(newest, progress.reduce(Progress::joined).unwrap_or_default());
            let range = saved.partition.range.clone();
            let overlapping = current.iter().filter(|partition| partition.range.overlaps(&range));
            let mut parents: Vec<u32> = overlapping
                .flat_map(|partition| partition.parents.iter().copied().chain([partition.identity.id]))
                .collect();
            parents.sort_unstable();
            parents.dedup();
            let identity = Identity::new(layout.new_id(), self.rid, version + 1);
            Arc::new(Partition::new(identity, range, parents, contents, self.surroundings.clone()))
        });
        self.partitions.store(Arc::new(made.collect()));
        turns.iter_mut().flatten().for_each(|turn| turn.retire());
    }
}

impl SavedPartition {
    /// What was saved, as the next thing that happens after `lsn`.
    fn after(&self, lsn: Lsn, progress: Progress) -> Contents {
        let lsn = Lsn(lsn.max(self.state.lsn).0 + 1);
        let head = Head { lsn, progress, ..Head::clone(&self.head) };
        let state = State { lsn, ..State::clone(&self.state) };
        Contents { head, state }
    }
}
