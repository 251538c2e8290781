//! A physical partition: one writer at a time, readers that never wait.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use protocol::lsn::Lsn;
use protocol::partition::EpkRange;
use protocol::resource_id::{ContainerRid, ItemRid};

use super::item::Ordinal;
use super::schema::Schema;
use super::state::State;
use super::transaction::Transaction;

/// The LSN of a partition nothing has been written to.
const LSN_FIRST: Lsn = Lsn(1);

/// One range of the ring, with its items.
pub(crate) struct Partition {
    pub(crate) identity: Identity,
    pub(crate) range: EpkRange,
    /// The ranges it came from, oldest first.
    pub(crate) parents: Vec<u32>,
    state: ArcSwap<State>,
    writer: Mutex<()>,
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
            state: ArcSwap::from_pointee(State::new(schema, LSN_FIRST)),
            writer: Mutex::new(()),
        }
    }

    /// The newest state. Never waits, whatever writers are doing.
    pub(crate) fn snapshot(&self) -> Arc<State> {
        self.state.load_full()
    }

    /// The newest state, borrowed for a short look.
    pub(crate) fn peek(&self) -> arc_swap::Guard<Arc<State>> {
        self.state.load()
    }

    /// Runs `work` on a private copy and publishes the copy if it succeeded. Writers take turns.
    /// Returns the LSN after the write as well: what the response's session token says.
    pub(crate) fn write<T, E>(
        &self,
        ordinals: &AtomicU64,
        now: u64,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> (Lsn, Result<T, E>) {
        let _turn = self.turn();
        let current = self.state.load_full();
        let mut transaction = Transaction::new(State::clone(&current), &self.identity, ordinals, now);
        let result = work(&mut transaction);
        if result.is_ok() && transaction.has_changes() {
            let lsn = transaction.state.lsn;
            self.state.store(Arc::new(transaction.state));
            (lsn, result)
        } else {
            (current.lsn, result)
        }
    }

    /// Makes the index anew under other rules. Cost grows with the items; readers go on meanwhile.
    pub(super) fn adopt(&self, schema: &Arc<Schema>) {
        let _turn = self.turn();
        let next = self.state.load().reindexed(Arc::clone(schema));
        self.state.store(Arc::new(next));
    }

    fn turn(&self) -> std::sync::MutexGuard<'_, ()> {
        // The lock guards no data: a writer that panicked published nothing.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
