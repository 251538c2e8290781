//! A physical partition: one writer at a time, readers that do not disturb it.
//!
//! Three views of one truth. The *head* is published by every write: point reads take it and never
//! wait. The writer keeps the whole *state* and changes it in place. A *snapshot* of that state is
//! published when somebody asks for one (a query, a feed) and withdrawn by the next write, so that
//! writes between two queries copy nothing. Whoever asks right after a write waits for the writer's
//! turn to end, some microseconds; whoever holds a snapshot keeps it for as long as it likes.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use protocol::lsn::Lsn;
use protocol::partition::EpkRange;
use protocol::resource_id::{ContainerRid, ItemRid};

use super::head::Head;
use super::item::Ordinal;
use super::schema::Schema;
use super::state::State;
use super::transaction::{Outcome, Transaction};

/// The LSN of a partition nothing has been written to.
const LSN_FIRST: Lsn = Lsn(1);

/// One range of the ring, with its items.
pub(crate) struct Partition {
    pub(crate) identity: Identity,
    pub(crate) range: EpkRange,
    /// The ranges it came from, oldest first.
    pub(crate) parents: Vec<u32>,
    head: ArcSwap<Head>,
    snapshot: ArcSwapOption<State>,
    writer: Mutex<State>,
}

/// What a partition's items have in common.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The range id, as clients see it.
    pub(crate) id: u32,
    container: ContainerRid,
    /// `dbs/{rid}/colls/{rid}/`.
    pub(super) container_link: String,
}

impl Identity {
    pub(super) fn item_rid(&self, ordinal: Ordinal) -> String {
        ItemRid { container: self.container, ordinal: ordinal.0 }.to_string()
    }
}

impl Partition {
    /// An empty partition.
    pub(super) fn new(id: u32, container: ContainerRid, range: EpkRange, schema: Arc<Schema>) -> Partition {
        let container_link = container.self_link();
        Partition {
            identity: Identity { id, container, container_link },
            range,
            parents: Vec::new(),
            head: ArcSwap::from_pointee(Head::new(Arc::clone(&schema), LSN_FIRST)),
            snapshot: ArcSwapOption::empty(),
            writer: Mutex::new(State::new(schema, LSN_FIRST)),
        }
    }

    /// The newest items by identity, for a short look. Never waits, whatever writers are doing.
    pub(crate) fn peek(&self) -> Guard<Arc<Head>> {
        self.head.load()
    }

    /// The newest state, to keep. Waits for a write in progress, and for nothing else.
    pub(crate) fn snapshot(&self) -> Arc<State> {
        if let Some(published) = self.snapshot.load_full() {
            return published;
        }
        let state = self.turn();
        let snapshot = Arc::new(State::clone(&state));
        self.snapshot.store(Some(Arc::clone(&snapshot)));
        snapshot
    }

    /// Runs `work` as one transaction and makes its changes durable for readers if it succeeded.
    /// Writers take turns, so `work` must not ask for a snapshot. Returns the LSN afterwards as well: what the session token says.
    pub(crate) fn write<T, E>(
        &self,
        ordinals: &AtomicU64,
        now: u64,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> (Lsn, Result<T, E>) {
        let mut state = self.turn();
        let head = self.head.load_full();
        let mut transaction = Transaction::new(Head::clone(&head), &state, &self.identity, ordinals, now);
        let result = work(&mut transaction);
        match transaction.finish() {
            Some(Outcome { head, changes, index }) if result.is_ok() => {
                let lsn = head.lsn;
                // Withdrawn first: what nobody else holds is then changed in place.
                self.snapshot.store(None);
                state.apply(lsn, changes, index);
                self.head.store(Arc::new(head));
                (lsn, result)
            }
            _ => (head.lsn, result),
        }
    }

    /// Makes the index anew under other rules. Cost grows with the items.
    pub(super) fn adopt(&self, schema: &Arc<Schema>) {
        let mut state = self.turn();
        self.snapshot.store(None);
        state.reindex(Arc::clone(schema));
        let mut head = Head::clone(&self.head.load());
        head.schema = Arc::clone(schema);
        self.head.store(Arc::new(head));
    }

    fn turn(&self) -> MutexGuard<'_, State> {
        // A writer that panicked did so in `work`, before anything was applied.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
