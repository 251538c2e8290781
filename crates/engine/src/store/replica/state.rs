//! The state of a replica at one LSN: items, index and change log.
//!
//! The writer owns the newest state and changes it in place; a snapshot is a clone of it, which costs nothing
//! until the writer continues. Every operation costs the logarithm of the number of items.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use protocol::lsn::Lsn;

use crate::disk::ChainOrigin;
use crate::items::Change;
use crate::items::{Item, Ordinal};
use crate::store::index::{Index, IndexKey, IndexSpace, KeyRange};
use crate::store::replica::change_log::ChangeLog;
use crate::store::schema::ContainerSchema;
use crate::store::transaction::document::terms_of_item;

/// Everything one replica of a partition holds.
#[derive(Clone)]
pub struct PartitionState {
    pub(crate) lsn: Lsn,
    pub(crate) schema: Arc<ContainerSchema>,
    pub(in crate::store) items: OrdMap<Ordinal, Arc<Item>>,
    /// The index over all items.
    pub index: Index,
    /// Index changes since the index began to be built; `None` once it is built. Only a partition that was
    /// read from disk is ever without an index, and queries wait for it.
    pub(in crate::store) pending_index_changes: Option<Vec<IndexChange>>,
    pub(crate) log: ChangeLog,
}

/// One change of the index: an entry is added or removed.
#[derive(Clone)]
pub(in crate::store) struct IndexChange {
    pub(in crate::store) entry: IndexKey,
    pub(in crate::store) imprecise: bool,
    pub(in crate::store) added: bool,
}

impl PartitionState {
    /// The state of an empty partition.
    pub(in crate::store) fn new(schema: Arc<ContainerSchema>, lsn: Lsn) -> PartitionState {
        let log = ChangeLog::starting_after(lsn);
        PartitionState {
            lsn,
            schema,
            items: OrdMap::new(),
            index: Index::default(),
            pending_index_changes: None,
            log,
        }
    }

    /// A state that was read from disk. Its index is still to be built.
    pub(in crate::store) fn restored(
        schema: Arc<ContainerSchema>,
        lsn: Lsn,
        items: &[Arc<Item>],
        log: ChangeLog,
    ) -> PartitionState {
        let items = items.iter().map(|item| (item.ordinal, Arc::clone(item))).collect();
        PartitionState {
            items,
            pending_index_changes: Some(Vec::new()),
            ..PartitionState::with_log(schema, lsn, log)
        }
    }

    /// The origin of a version chain that begins with this state.
    pub(in crate::store) fn origin(&self) -> ChainOrigin {
        ChainOrigin { lsn_at_start: self.lsn, trimmed_to: self.log.trimmed_to() }
    }

    /// Whether the index is still to be built.
    pub(in crate::store) fn lacks_index(&self) -> bool {
        self.pending_index_changes.is_some()
    }

    /// A clone whose index is to be built, while writes continue here and are recorded.
    pub(in crate::store) fn begin_index(&mut self) -> Option<PartitionState> {
        self.pending_index_changes.as_mut()?.clear();
        Some(self.clone())
    }

    /// Takes over the index of an earlier clone, unless another was built meanwhile.
    pub(in crate::store) fn finish_index(&mut self, made: PartitionState) {
        let Some(changes) = self.pending_index_changes.take() else { return };
        debug_assert!(Arc::ptr_eq(&self.schema, &made.schema), "other rules make another index");
        self.index = made.index;
        self.change_index(changes);
    }

    /// A state without items, but with a change log.
    pub(in crate::store) fn with_log(
        schema: Arc<ContainerSchema>,
        lsn: Lsn,
        log: ChangeLog,
    ) -> PartitionState {
        PartitionState { log, ..PartitionState::new(schema, lsn) }
    }

    /// Every item, in order of creation.
    pub(in crate::store) fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.items.values()
    }

    /// The item an index entry points at.
    pub fn item(&self, ordinal: Ordinal) -> Option<&Arc<Item>> {
        self.items.get(&ordinal)
    }

    /// Items in order of creation, from `from` on.
    pub(crate) fn items_from(&self, from: Ordinal) -> impl Iterator<Item = &Arc<Item>> {
        self.items.range(from..).map(|(_, item)| item)
    }

    /// Items in reverse order of creation, from `from` back to the first.
    pub(crate) fn items_back_from(&self, from: Ordinal) -> impl Iterator<Item = &Arc<Item>> {
        self.items.range(..=from).rev().map(|(_, item)| item)
    }

    /// How many items there are, expired ones included.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Items that expired by `now`, oldest first.
    pub(crate) fn expired(&self, now: u64) -> impl Iterator<Item = &Arc<Item>> {
        let space = IndexSpace::EXPIRY.to_bytes();
        let mut end = space.to_vec();
        end.extend_from_slice(&now.saturating_add(1).to_be_bytes());
        let range = KeyRange { from: Bound::Included(space.to_vec()), to: Bound::Excluded(end) };
        self.index.range(&range).filter_map(|entry| self.item(entry.ordinal()))
    }

    /// Applies the outcome of a transaction in place.
    pub(in crate::store) fn apply(&mut self, lsn: Lsn, changes: Vec<Arc<Change>>, index: Vec<IndexChange>) {
        self.lsn = lsn;
        match &mut self.pending_index_changes {
            Some(noted) => noted.extend(index),
            None => self.change_index(index),
        }
        for (operation, change) in (0..).zip(changes) {
            let (before, after) = change.versions();
            // A version from another region may have another ordinal than the one it replaces.
            if let Some(before) = before.filter(|before| after.is_none_or(|it| it.ordinal != before.ordinal))
            {
                self.items.remove(&before.ordinal);
            }
            if let Some(after) = after {
                self.items.insert(after.ordinal, Arc::clone(after));
            }
            self.log.append(operation, change);
        }
    }

    fn change_index(&mut self, changes: Vec<IndexChange>) {
        for IndexChange { entry, imprecise, added } in changes {
            if added {
                self.index.insert(entry, imprecise);
            } else {
                self.index.remove(&entry, imprecise);
            }
        }
    }

    /// Undoes the changes after `lsn`, as far as the log reaches.
    pub(in crate::store) fn roll_back(&mut self, lsn: Lsn) {
        while let Some(change) = self.log.pop_newest(lsn) {
            let (before, after) = change.versions();
            self.swap(after, before);
        }
        self.lsn = self.log.newest_lsn().max(lsn);
    }

    /// Applies the changes of `log` up to `lsn` that `concerns` selects.
    pub(in crate::store) fn roll_forward(
        &mut self,
        log: &ChangeLog,
        lsn: Lsn,
        concerns: impl Fn(&Change) -> bool,
    ) {
        for (operation, change) in log.entries_between(self.lsn, lsn).filter(|(_, change)| concerns(change)) {
            self.redo(change);
            self.log.append(operation, Arc::clone(change));
            self.log.trim(change.at, 1);
        }
        self.lsn = lsn;
    }

    /// Applies a change to items and index; the caller maintains the log.
    pub(in crate::store) fn redo(&mut self, change: &Change) {
        let (before, after) = change.versions();
        self.swap(before, after);
    }

    /// Replaces one version of an item by another.
    fn swap(&mut self, old: Option<&Arc<Item>>, new: Option<&Arc<Item>>) {
        if let Some(item) = old {
            self.items.remove(&item.ordinal);
            for term in terms_of_item(item, &item.value(), &self.schema).iter() {
                self.index.remove(&IndexKey::of_term(term.bytes, item.ordinal), term.imprecise);
            }
            self.index.remove(&IndexKey::of_term(&lsn_term(item.lsn), item.ordinal), false);
        }
        if let Some(item) = new {
            self.insert(item);
        }
    }

    /// Adds an item that is new here.
    pub(in crate::store) fn insert(&mut self, item: &Arc<Item>) {
        self.items.insert(item.ordinal, Arc::clone(item));
        for term in terms_of_item(item, &item.value(), &self.schema).iter() {
            self.index.insert(IndexKey::of_term(term.bytes, item.ordinal), term.imprecise);
        }
        self.index.insert(IndexKey::of_term(&lsn_term(item.lsn), item.ordinal), false);
    }

    /// Whether the index equals one that is built anew.
    #[cfg(test)]
    pub(crate) fn index_is_consistent(&self) -> bool {
        let mut anew = self.clone();
        anew.reindex(Arc::clone(&self.schema));
        !self.lacks_index() && anew.index == self.index
    }

    /// Rebuilds the index under another schema.
    pub(in crate::store) fn reindex(&mut self, schema: Arc<ContainerSchema>) {
        let mut index = Index::default();
        for item in self.items.values() {
            for term in terms_of_item(item, &item.value(), &schema).iter() {
                index.insert(IndexKey::of_term(term.bytes, item.ordinal), term.imprecise);
            }
            index.insert(IndexKey::of_term(&lsn_term(item.lsn), item.ordinal), false);
        }
        self.index = index;
        self.pending_index_changes = None;
        self.schema = schema;
    }
}

/// The index term `space · lsn`: the position of an item in the change feed.
pub(in crate::store) fn lsn_term(lsn: Lsn) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&IndexSpace::LSN.to_bytes());
    bytes[8..].copy_from_slice(&lsn.0.to_be_bytes());
    bytes
}
