//! A version chain: the successive states of a partition in one region, with one writer at a time.
//!
//! Each commit publishes a new *head*; point reads load it and never wait. The writer owns the whole *state*
//! and changes it in place. A *snapshot* of that state is published when a query or a feed asks for one, and
//! withdrawn by the next commit, so that commits between two queries copy nothing. A reader that asks right
//! after a commit waits some microseconds for the write guard; a snapshot once taken never changes.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::head::Head;
use super::state::PartitionState;
use crate::blocking::run_blocking;
use crate::store::repartition::child_partitions::LogFollower;
use crate::store::schema::ContainerSchema;
use crate::store::transaction::TransactionOutcome;

/// The states of a partition in one region, of which the newest can be read and changed.
pub(in crate::store) struct VersionChain {
    head: ArcSwap<Head>,
    snapshot: ArcSwapOption<PartitionState>,
    writer: Mutex<Writer>,
    /// Notified when the index of what was read from disk has been built.
    indexed: Condvar,
    /// The child partitions that apply its commits while they are being built, if there are any.
    follower: ArcSwapOption<LogFollower>,
}

struct Writer {
    state: PartitionState,
    /// Set once other partitions have taken over: what is written here would be lost.
    replaced: bool,
}

/// Exclusive access to the newest state. Its holder must not wait for anything but the journal append.
pub(in crate::store) struct WriteGuard<'a> {
    chain: &'a VersionChain,
    writer: MutexGuard<'a, Writer>,
}

impl VersionChain {
    /// A chain that begins with `state`, whose head is `head`.
    pub(in crate::store) fn new(head: Head, state: PartitionState) -> VersionChain {
        VersionChain {
            head: ArcSwap::from_pointee(head),
            snapshot: ArcSwapOption::empty(),
            writer: Mutex::new(Writer { state, replaced: false }),
            indexed: Condvar::new(),
            follower: ArcSwapOption::empty(),
        }
    }

    /// Sets or removes the follower, from the next write guard on.
    pub(in crate::store) fn set_follower(&self, follower: Option<LogFollower>) {
        self.follower.store(follower.map(Arc::new));
    }

    /// Whether writers help the follower to catch up.
    pub(in crate::store) fn writers_help(&self) -> bool {
        self.follower.load().as_ref().is_some_and(|follower| follower.writers_help)
    }

    /// The newest items by id. Never waits, whatever writers are doing.
    pub(in crate::store) fn head(&self) -> Guard<Arc<Head>> {
        self.head.load()
    }

    /// The newest state. Waits for a write in progress and, after a restart, for the index.
    pub(in crate::store) fn snapshot(&self) -> Arc<PartitionState> {
        if let Some(published) = self.snapshot.load_full() {
            return published;
        }
        self.wait_for_index();
        self.write_guard().snapshot()
    }

    /// Waits until there is an index, which is missing only right after a data directory was opened.
    pub(in crate::store) fn wait_for_index(&self) {
        if !self.write_guard().writer.state.lacks_index() {
            return;
        }
        // Building it can take seconds, so other tasks of this worker thread are moved elsewhere.
        run_blocking(|| {
            let mut guard = self.write_guard();
            self.indexed.wait_while(&mut guard.writer, |writer| writer.state.lacks_index());
        });
    }

    /// Builds the index of what was read from disk while writes continue. Cost grows with the items.
    pub(in crate::store) fn build_index(&self) {
        let Some(mut copy) = self.write_guard().writer.state.begin_index() else { return };
        let schema = Arc::clone(&copy.schema);
        copy.reindex(schema);
        self.write_guard().writer.state.finish_index(copy);
        self.indexed.notify_all();
    }

    /// Waits until no other writer holds the guard, and takes it.
    pub(in crate::store) fn write_guard(&self) -> WriteGuard<'_> {
        // A writer that panics does so before anything is applied, so the lock need not be poisoned.
        WriteGuard { chain: self, writer: self.writer.lock() }
    }
}

impl WriteGuard<'_> {
    /// Whether other partitions have taken over.
    pub(in crate::store) fn is_replaced(&self) -> bool {
        self.writer.replaced
    }

    /// Marks the chain as taken over by other partitions.
    pub(in crate::store) fn mark_replaced(&mut self) {
        self.writer.replaced = true;
    }

    /// The newest state, borrowed.
    pub(in crate::store) fn state(&self) -> &PartitionState {
        &self.writer.state
    }

    /// The follower of the chain, if it has one.
    pub(in crate::store) fn follower(&self) -> Option<Arc<LogFollower>> {
        self.chain.follower.load_full()
    }

    /// The newest state, as a snapshot that is also published for others.
    pub(in crate::store) fn snapshot(&mut self) -> Arc<PartitionState> {
        let snapshot = Arc::new(self.writer.state.clone());
        self.chain.snapshot.store(Some(Arc::clone(&snapshot)));
        snapshot
    }

    /// The newest head of the chain.
    pub(in crate::store) fn head(&self) -> Arc<Head> {
        self.chain.head.load_full()
    }

    /// Applies the outcome of a transaction to the state, and publishes the new head.
    pub(in crate::store) fn commit(&mut self, outcome: TransactionOutcome) -> Arc<Head> {
        let TransactionOutcome { head, changes, index } = outcome;
        // Withdrawn first: a state that no snapshot shares is changed in place.
        self.chain.snapshot.store(None);
        let (count, at) = (changes.len(), changes.last().map(|change| change.at));
        self.writer.state.apply(head.lsn, changes, index);
        match (self.chain.follower.load().as_ref(), at) {
            (Some(follower), _) => follower.help_catch_up(&self.writer.state),
            (None, Some(at)) => self.writer.state.log.trim(at, count),
            (None, None) => {}
        }
        let head = Arc::new(head);
        self.chain.head.store(Arc::clone(&head));
        head
    }

    /// Replaces the newest head and state by others.
    pub(in crate::store) fn replace(&mut self, head: Head, state: PartitionState) -> Arc<Head> {
        self.chain.snapshot.store(None);
        self.writer.state = state;
        let head = Arc::new(head);
        self.chain.head.store(Arc::clone(&head));
        head
    }

    /// Rebuilds the index under another schema. Cost grows with the items.
    pub(in crate::store) fn apply_schema(&mut self, schema: &Arc<ContainerSchema>) {
        self.chain.snapshot.store(None);
        self.writer.state.reindex(Arc::clone(schema));
        self.chain.indexed.notify_all();
        let mut head = Head::clone(&self.chain.head.load());
        head.schema = Arc::clone(schema);
        self.chain.head.store(Arc::new(head));
    }
}
