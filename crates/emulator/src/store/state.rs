//! A partition's state at one LSN: an immutable snapshot.
//!
//! Cloning is cheap (persistent maps share what did not change), so a writer works on its own copy
//! and readers keep the one they took. Point look-ups cost a hash, everything else the logarithm of
//! the number of items.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;
use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;

use super::index::{Index, KeyRange, Space, Term, Terms, difference};
use super::item::{Item, ItemKey, ItemKeyRef, ItemsByKey, Ordinal};
use super::log::Log;
use super::schema::Schema;

/// Everything one partition holds.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) lsn: Lsn,
    pub(crate) schema: Arc<Schema>,
    items: OrdMap<Ordinal, Arc<Item>>,
    by_key: ItemsByKey,
    pub(crate) index: Index,
    pub(crate) log: Log,
    bytes: u64,
}

impl State {
    /// An empty partition.
    pub(crate) fn new(schema: Arc<Schema>, lsn: Lsn) -> State {
        State {
            lsn,
            schema,
            items: OrdMap::new(),
            by_key: ItemsByKey::default(),
            index: Index::default(),
            log: Log::starting_after(lsn),
            bytes: 0,
        }
    }

    /// The item with this identity, expired or not.
    pub(crate) fn get(&self, epk: &EffectivePartitionKey, id: &str) -> Option<&Arc<Item>> {
        self.by_key.get(&ItemKeyRef { epk, id })
    }

    /// The item with this identity, if a reader at `now` sees it.
    pub(crate) fn get_live(&self, epk: &EffectivePartitionKey, id: &str, now: u64) -> Option<&Arc<Item>> {
        self.get(epk, id).filter(|item| item.is_live(self.schema.default_ttl, now))
    }

    /// The item an index entry points at.
    pub(crate) fn item(&self, ordinal: Ordinal) -> Option<&Arc<Item>> {
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

    /// Bytes of all items.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Items that expired by `now`, oldest first.
    pub(crate) fn expired(&self, now: u64) -> impl Iterator<Item = &Arc<Item>> {
        let space = Space::EXPIRY.to_bytes();
        let mut end = space.to_vec();
        end.extend_from_slice(&now.saturating_add(1).to_be_bytes());
        let range = KeyRange { from: Bound::Included(space.to_vec()), to: Bound::Excluded(end) };
        self.index.range(&range).filter_map(|entry| self.item(entry.ordinal()))
    }

    /// Adds a new item.
    pub(super) fn insert(&mut self, item: Arc<Item>, terms: &Terms) {
        for term in terms.iter() {
            self.index.insert(term, item.ordinal);
        }
        self.index.insert(lsn_term(&lsn_bytes(item.lsn)), item.ordinal);
        self.bytes += item.size() as u64;
        self.by_key.insert(ItemKey::of(&item), Arc::clone(&item));
        self.items.insert(item.ordinal, item);
    }

    /// Puts `new` in the place of `old`, which has the same ordinal. Returns how many terms changed.
    pub(super) fn replace(
        &mut self,
        old: &Item,
        old_terms: &Terms,
        new: Arc<Item>,
        new_terms: &Terms,
    ) -> usize {
        debug_assert_eq!(old.ordinal, new.ordinal);
        let (removed, added) = difference(old_terms, new_terms);
        let changed = removed.len() + added.len();
        removed.into_iter().for_each(|term| self.index.remove(term, old.ordinal));
        added.into_iter().for_each(|term| self.index.insert(term, new.ordinal));
        self.index.remove(lsn_term(&lsn_bytes(old.lsn)), old.ordinal);
        self.index.insert(lsn_term(&lsn_bytes(new.lsn)), new.ordinal);
        self.bytes = self.bytes - old.size() as u64 + new.size() as u64;
        if old.id != new.id {
            self.by_key.remove(&ItemKey::of(old));
        }
        self.by_key.insert(ItemKey::of(&new), Arc::clone(&new));
        self.items.insert(new.ordinal, new);
        changed
    }

    /// Removes an item.
    pub(super) fn remove(&mut self, item: &Item, terms: &Terms) {
        for term in terms.iter() {
            self.index.remove(term, item.ordinal);
        }
        self.index.remove(lsn_term(&lsn_bytes(item.lsn)), item.ordinal);
        self.bytes -= item.size() as u64;
        self.by_key.remove(&ItemKey::of(item));
        self.items.remove(&item.ordinal);
    }

    /// The same items under other rules: every entry of the index is made anew.
    pub(super) fn reindexed(&self, schema: Arc<Schema>) -> State {
        let mut index = Index::default();
        for item in self.items.values() {
            let value = item.value();
            for term in super::document::terms_of_item(item, &value, &schema).iter() {
                index.insert(term, item.ordinal);
            }
            index.insert(lsn_term(&lsn_bytes(item.lsn)), item.ordinal);
        }
        State { index, schema, ..self.clone() }
    }
}

/// `space · lsn`: the place of an item in the change feed.
pub(super) fn lsn_bytes(lsn: Lsn) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&Space::LSN.to_bytes());
    bytes[8..].copy_from_slice(&lsn.0.to_be_bytes());
    bytes
}

fn lsn_term(bytes: &[u8; 16]) -> Term<'_> {
    Term { bytes, imprecise: false }
}
