//! One sequence of states of a partition: one writer at a time, readers that do not disturb it.
//!
//! Three views of one truth. The *head* is published by every write: point reads take it and never
//! wait. The writer keeps the whole *state* and changes it in place. A *snapshot* of that state is
//! published when somebody asks for one (a query, a feed) and withdrawn by the next write, so that
//! writes between two queries copy nothing. Whoever asks right after a write waits for the writer's
//! turn to end, some microseconds; whoever holds a snapshot keeps it for as long as it likes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};

use super::drafts::Follower;
use super::head::Head;
use super::schema::ContainerSchema;
use super::state::PartitionState;
use super::transaction::Outcome;
use crate::disk;

/// The states of a partition, of which the newest can be read and changed.
pub(super) struct Line {
    head: ArcSwap<Head>,
    snapshot: ArcSwapOption<PartitionState>,
    writer: Mutex<Writer>,
    /// The index of what was read from disk has been made.
    indexed: Condvar,
    /// Who follows it, if somebody does.
    follower: ArcSwapOption<Follower>,
}

struct Writer {
    state: PartitionState,
    /// Set when other partitions have taken over: what is written here would be lost.
    retired: bool,
}

/// The writer's turn. Nobody else writes while it lasts, so nobody may wait while holding it.
pub(super) struct Turn<'a> {
    line: &'a Line,
    writer: MutexGuard<'a, Writer>,
}

impl Line {
    /// Begins with `state`, whose head is `head`.
    pub(super) fn new(head: Head, state: PartitionState) -> Line {
        Line {
            head: ArcSwap::from_pointee(head),
            snapshot: ArcSwapOption::empty(),
            writer: Mutex::new(Writer { state, retired: false }),
            indexed: Condvar::new(),
            follower: ArcSwapOption::empty(),
        }
    }

    /// Says who follows it from the next turn on, or that nobody does.
    pub(super) fn let_follow(&self, follower: Option<Follower>) {
        self.follower.store(follower.map(Arc::new));
    }

    /// Whether whoever commits here helps somebody to follow.
    pub(super) fn helps(&self) -> bool {
        self.follower.load().as_ref().is_some_and(|follower| follower.is_helped)
    }

    /// The newest items by identity, for a short look. Never waits, whatever writers are doing.
    pub(super) fn peek(&self) -> Guard<Arc<Head>> {
        self.head.load()
    }

    /// The newest state, to keep. Waits for a write in progress, and for nothing else.
    pub(super) fn snapshot(&self) -> Arc<PartitionState> {
        if let Some(published) = self.snapshot.load_full() {
            return published;
        }
        self.wait_for_index();
        self.turn().snapshot()
    }

    /// Waits until there is an index: only right after a directory was opened there is none.
    pub(super) fn wait_for_index(&self) {
        let lacks_index = |writer: &mut Writer| writer.state.lacks_index();
        if !lacks_index(&mut self.turn().writer) {
            return;
        }
        // It can take seconds, so that whoever answers requests makes room for others.
        disk::make_room(|| {
            let turn = self.turn();
            drop(self.indexed.wait_while(turn.writer, lacks_index).unwrap_or_else(PoisonError::into_inner));
        });
    }

    /// Makes the index of what was read from disk. Writes go on meanwhile; costs grow with the items.
    pub(super) fn make_index(&self) {
        let Some(mut copy) = self.turn().writer.state.begin_index() else { return };
        let schema = Arc::clone(&copy.schema);
        copy.reindex(schema);
        self.turn().writer.state.finish_index(copy);
        self.indexed.notify_all();
    }

    /// Waits for the writer's turn.
    pub(super) fn turn(&self) -> Turn<'_> {
        // A writer that panicked did so before anything was applied.
        Turn { line: self, writer: self.writer.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

impl Turn<'_> {
    /// Whether other partitions have taken over.
    pub(super) fn is_retired(&self) -> bool {
        self.writer.retired
    }

    /// Says that others have taken over.
    pub(super) fn retire(&mut self) {
        self.writer.retired = true;
    }

    /// The newest state.
    pub(super) fn state(&self) -> &PartitionState {
        &self.writer.state
    }

    /// Who follows it.
    pub(super) fn follower(&self) -> Option<Arc<Follower>> {
        self.line.follower.load_full()
    }

    /// The newest state, to keep.
    pub(super) fn snapshot(&mut self) -> Arc<PartitionState> {
        let snapshot = Arc::new(self.writer.state.clone());
        self.line.snapshot.store(Some(Arc::clone(&snapshot)));
        snapshot
    }

    /// The newest head.
    pub(super) fn head(&self) -> Arc<Head> {
        self.line.head.load_full()
    }

    /// Carries out what a transaction decided, and publishes it.
    pub(super) fn commit(&mut self, outcome: Outcome) -> Arc<Head> {
        let Outcome { head, changes, index } = outcome;
        // Withdrawn first: what nobody else holds is then changed in place.
        self.line.snapshot.store(None);
        let (count, at) = (changes.len(), changes.last().map(|change| change.at));
        self.writer.state.apply(head.lsn, changes, index);
        match (self.line.follower.load().as_ref(), at) {
            (Some(follower), _) => follower.help(&self.writer.state),
            (None, Some(at)) => self.writer.state.log.trim(at, count),
            (None, None) => {}
        }
        let head = Arc::new(head);
        self.line.head.store(Arc::clone(&head));
        head
    }

    /// Puts another head and state in the place of the newest ones.
    pub(super) fn replace(&mut self, head: Head, state: PartitionState) -> Arc<Head> {
        self.line.snapshot.store(None);
        self.writer.state = state;
        let head = Arc::new(head);
        self.line.head.store(Arc::clone(&head));
        head
    }

    /// Makes the index anew under other rules. Cost grows with the items.
    pub(super) fn adopt(&mut self, schema: &Arc<ContainerSchema>) {
        self.line.snapshot.store(None);
        self.writer.state.reindex(Arc::clone(schema));
        self.line.indexed.notify_all();
        let mut head = Head::clone(&self.line.head.load());
        head.schema = Arc::clone(schema);
        self.line.head.store(Arc::new(head));
    }
}
