//! A partition's whole state at one LSN: an immutable snapshot.
//!
//! What finds items by value or in order is kept by the writer and changed in place; a snapshot is
//! a clone of it, which costs nothing until the writer goes on. Everything here costs the logarithm
//! of the number of items.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use protocol::lsn::Lsn;

use super::document::terms_of_item;
use super::index::{Index, IndexKey, IndexSpace, KeyRange};
use super::log::Log;
use super::schema::ContainerSchema;
use crate::disk::Birth;
use crate::items::Change;
use crate::items::{Item, Ordinal};

/// Everything one partition holds.
#[derive(Clone)]
pub struct PartitionState {
    pub(crate) lsn: Lsn,
    pub(crate) schema: Arc<ContainerSchema>,
    pub(super) items: OrdMap<Ordinal, Arc<Item>>,
    pub index: Index,
    /// What has changed since the index began to be made; `None` once it is made. Only a partition
    /// that was read from disk is ever without one, and nobody searches it meanwhile.
    pub(super) unindexed: Option<Vec<IndexChange>>,
    pub(crate) log: Log,
}

/// One change of the index: an entry comes or goes.
#[derive(Clone)]
pub(super) struct IndexChange {
    pub(super) entry: IndexKey,
    pub(super) imprecise: bool,
    pub(super) added: bool,
}

impl PartitionState {
    /// An empty partition.
    pub(super) fn new(schema: Arc<ContainerSchema>, lsn: Lsn) -> PartitionState {
        let log = Log::starting_after(lsn);
        PartitionState { lsn, schema, items: OrdMap::new(), index: Index::default(), unindexed: None, log }
    }

    /// What was read from disk. Its index is still to be made.
    pub(super) fn restored(
        schema: Arc<ContainerSchema>,
        lsn: Lsn,
        items: &[Arc<Item>],
        log: Log,
    ) -> PartitionState {
        let items = items.iter().map(|item| (item.ordinal, Arc::clone(item))).collect();
        PartitionState { items, unindexed: Some(Vec::new()), ..PartitionState::with_log(schema, lsn, log) }
    }

    /// How a line begins with it.
    pub(super) fn birth(&self) -> Birth {
        Birth { born: self.lsn, forgotten: self.log.forgotten() }
    }

    /// Whether the index is still to be made.
    pub(super) fn lacks_index(&self) -> bool {
        self.unindexed.is_some()
    }

    /// A copy to make the index of, while writes go on here and are noted.
    pub(super) fn begin_index(&mut self) -> Option<PartitionState> {
        self.unindexed.as_mut()?.clear();
        Some(self.clone())
    }

    /// Takes on the index that was made of an earlier copy, unless another was made meanwhile.
    pub(super) fn finish_index(&mut self, made: PartitionState) {
        let Some(changes) = self.unindexed.take() else { return };
        debug_assert!(Arc::ptr_eq(&self.schema, &made.schema), "other rules make another index");
        self.index = made.index;
        self.change_index(changes);
    }

    /// No items yet, but a history.
    pub(super) fn with_log(schema: Arc<ContainerSchema>, lsn: Lsn, log: Log) -> PartitionState {
        PartitionState { log, ..PartitionState::new(schema, lsn) }
    }

    /// Every item, in order of creation.
    pub(super) fn items(&self) -> impl Iterator<Item = &Arc<Item>> {
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

    /// Carries out what a transaction decided, in place.
    pub(super) fn apply(&mut self, lsn: Lsn, changes: Vec<Arc<Change>>, index: Vec<IndexChange>) {
        self.lsn = lsn;
        match &mut self.unindexed {
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

    /// Undoes what happened after `lsn`, as far as the log tells.
    pub(super) fn go_back(&mut self, lsn: Lsn) {
        while let Some(change) = self.log.pop_newest(lsn) {
            let (before, after) = change.versions();
            self.exchange(after, before);
        }
        self.lsn = self.log.newest_lsn().max(lsn);
    }

    /// Does again what `log` says happened up to `lsn`, where `concerns` says that it belongs here.
    pub(super) fn go_forward(&mut self, log: &Log, lsn: Lsn, concerns: impl Fn(&Change) -> bool) {
        for (operation, change) in log.entries_between(self.lsn, lsn).filter(|(_, change)| concerns(change)) {
            self.redo(change);
            self.log.append(operation, Arc::clone(change));
            self.log.trim(change.at, 1);
        }
        self.lsn = lsn;
    }

    /// Does again what a change did to the items; the log is the caller's.
    pub(super) fn redo(&mut self, change: &Change) {
        let (before, after) = change.versions();
        self.exchange(before, after);
    }

    /// Puts one version of an item in the place of another.
    fn exchange(&mut self, old: Option<&Arc<Item>>, new: Option<&Arc<Item>>) {
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

    /// Adds an item that is not there.
    pub(super) fn insert(&mut self, item: &Arc<Item>) {
        self.items.insert(item.ordinal, Arc::clone(item));
        for term in terms_of_item(item, &item.value(), &self.schema).iter() {
            self.index.insert(IndexKey::of_term(term.bytes, item.ordinal), term.imprecise);
        }
        self.index.insert(IndexKey::of_term(&lsn_term(item.lsn), item.ordinal), false);
    }

    /// Whether the index is what a new one would be.
    #[cfg(test)]
    pub(crate) fn index_is_right(&self) -> bool {
        let mut anew = self.clone();
        anew.reindex(Arc::clone(&self.schema));
        !self.lacks_index() && anew.index == self.index
    }

    /// Makes every entry of the index anew, under other rules.
    pub(super) fn reindex(&mut self, schema: Arc<ContainerSchema>) {
        let mut index = Index::default();
        for item in self.items.values() {
            for term in terms_of_item(item, &item.value(), &schema).iter() {
                index.insert(IndexKey::of_term(term.bytes, item.ordinal), term.imprecise);
            }
            index.insert(IndexKey::of_term(&lsn_term(item.lsn), item.ordinal), false);
        }
        self.index = index;
        self.unindexed = None;
        self.schema = schema;
    }
}

/// `space · lsn`: the place of an item in the change feed.
pub(super) fn lsn_term(lsn: Lsn) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&IndexSpace::LSN.to_bytes());
    bytes[8..].copy_from_slice(&lsn.0.to_be_bytes());
    bytes
}
