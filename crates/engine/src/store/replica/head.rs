//! The head of a version chain: items by id at one LSN, which is all that point reads need.
//!
//! Every commit publishes a new head. Its map is persistent, so the next one shares all but a few nodes with
//! it, and readers keep the one they loaded. A lookup costs a hash.

use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;

use crate::items::Change;
use crate::items::Item;
use crate::store::replica::items_by_key::ItemsByKey;
use crate::store::replica::progress::{Progress, VersionVector};
use crate::store::schema::ContainerSchema;

/// The items of a partition by id, at one LSN.
#[derive(Clone)]
pub struct Head {
    /// The LSN of the last commit.
    pub lsn: Lsn,
    pub(crate) schema: Arc<ContainerSchema>,
    pub(in crate::store) versions: VersionVector,
    pub(in crate::store) by_key: ItemsByKey,
    pub(in crate::store) bytes: u64,
}

impl Head {
    /// The head of an empty partition.
    pub(in crate::store) fn new(schema: Arc<ContainerSchema>, lsn: Lsn) -> Head {
        Head { lsn, schema, versions: VersionVector::default(), by_key: ItemsByKey::default(), bytes: 0 }
    }

    /// The progress of the replica.
    pub fn progress(&self) -> Progress {
        Progress { lsn: self.lsn, versions: self.versions.clone() }
    }

    /// The head of a partition with these items.
    pub(in crate::store) fn restored(schema: Arc<ContainerSchema>, lsn: Lsn, items: &[Arc<Item>]) -> Head {
        let mut head = Head::new(schema, lsn);
        items.iter().for_each(|item| head.insert(item));
        head
    }

    /// The item with this identity, expired or not.
    pub fn get(&self, epk: &EffectivePartitionKey, id: &str) -> Option<&Arc<Item>> {
        self.by_key.get(epk, id)
    }

    /// The item with this identity, if a reader at `now` sees it.
    pub fn get_live(&self, epk: &EffectivePartitionKey, id: &str, now: u64) -> Option<&Arc<Item>> {
        self.get(epk, id).filter(|item| item.is_live(self.schema.default_ttl, now))
    }

    /// How many items there are, expired ones included.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Bytes of all items.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Applies a change to the items.
    pub(in crate::store) fn redo(&mut self, change: &Change) {
        match change.versions() {
            (Some(before), Some(after)) => self.replace(before, after),
            (None, Some(after)) => self.insert(after),
            (Some(before), None) => self.remove(before),
            (None, None) => {}
        }
    }

    pub(in crate::store) fn insert(&mut self, item: &Arc<Item>) {
        self.bytes += item.size() as u64;
        self.by_key.insert(item);
    }

    pub(in crate::store) fn replace(&mut self, old: &Item, new: &Arc<Item>) {
        if old.id == new.id {
            self.bytes -= old.size() as u64;
        } else {
            self.remove(old);
        }
        self.insert(new);
    }

    pub(in crate::store) fn remove(&mut self, item: &Item) {
        self.bytes -= item.size() as u64;
        self.by_key.remove(item);
    }
}
