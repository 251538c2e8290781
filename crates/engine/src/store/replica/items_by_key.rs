//! Items by identity: effective partition key and id.
//!
//! A persistent map from the hash of the identity to the item, so that its nodes hold nothing but
//! numbers and pointers: every write copies a few of them. Two identities with one hash share a slot.

use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::Arc;

use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use protocol::partition::EffectivePartitionKey;

use crate::items::Item;

/// A persistent hash map of items by identity.
#[derive(Clone, Default)]
pub(in crate::store) struct ItemsByKey {
    slots: GenericHashMap<u64, Slot, BuildHasherDefault<AlreadyHashed>, DefaultSharedPtr>,
    hasher: foldhash::fast::RandomState,
    length: usize,
}

/// The items with one hash: nearly always one.
#[derive(Clone)]
enum Slot {
    One(Arc<Item>),
    Several(Arc<Vec<Arc<Item>>>),
}

impl ItemsByKey {
    /// The item with this identity. Costs a hash and a comparison.
    pub(in crate::store) fn get(&self, epk: &EffectivePartitionKey, id: &str) -> Option<&Arc<Item>> {
        self.slots.get(&self.hash(epk, id))?.items().iter().find(|item| matches_key(item, epk, id))
    }

    pub(in crate::store) fn len(&self) -> usize {
        self.length
    }

    /// Adds an item, replacing the one with its identity if there is one.
    pub(in crate::store) fn insert(&mut self, item: &Arc<Item>) {
        let hash = self.hash(&item.epk, &item.id);
        let next = match self.slots.get(&hash) {
            None => {
                self.length += 1;
                Slot::One(Arc::clone(item))
            }
            Some(Slot::One(other)) if matches_key(other, &item.epk, &item.id) => Slot::One(Arc::clone(item)),
            Some(slot) => {
                let mut items = slot.items().to_vec();
                let before = items.len();
                items.retain(|other| !matches_key(other, &item.epk, &item.id));
                self.length += usize::from(items.len() == before);
                items.push(Arc::clone(item));
                Slot::Several(Arc::new(items))
            }
        };
        self.slots.insert(hash, next);
    }

    /// Removes the item with the identity of `item`.
    pub(in crate::store) fn remove(&mut self, item: &Item) {
        let hash = self.hash(&item.epk, &item.id);
        let Some(slot) = self.slots.get(&hash) else { return };
        let mut left = slot.items().to_vec();
        left.retain(|other| !matches_key(other, &item.epk, &item.id));
        self.length -= slot.items().len() - left.len();
        match left.len() {
            0 => drop(self.slots.remove(&hash)),
            1 => drop(self.slots.insert(hash, Slot::One(left.swap_remove(0)))),
            _ => drop(self.slots.insert(hash, Slot::Several(Arc::new(left)))),
        }
    }

    fn hash(&self, epk: &EffectivePartitionKey, id: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(epk.as_bytes());
        hasher.write(id.as_bytes());
        hasher.finish()
    }
}

impl Slot {
    fn items(&self) -> &[Arc<Item>] {
        match self {
            Slot::One(item) => std::slice::from_ref(item),
            Slot::Several(items) => items,
        }
    }
}

fn matches_key(item: &Item, epk: &EffectivePartitionKey, id: &str) -> bool {
    item.id == id && item.epk == *epk
}

/// Passes a hash through: the keys are well-distributed hashes already.
#[derive(Clone, Copy, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
