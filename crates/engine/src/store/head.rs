//! What point reads need of a partition: items by identity, at one LSN.
//!
//! Every write publishes a new head. Its map is persistent, so the next one shares all but a few
//! nodes with it, and readers keep the one they took. A look-up costs a hash.

use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::partition::EffectivePartitionKey;

use super::by_key::ItemsByKey;
use super::reach::{Progress, VersionVector};
use super::schema::ContainerSchema;
use crate::items::Change;
use crate::items::Item;

/// Items by identity, and how far the partition is.
#[derive(Clone)]
pub struct Head {
    pub lsn: Lsn,
    pub(crate) schema: Arc<ContainerSchema>,
    pub(super) versions: VersionVector,
    pub(super) by_key: ItemsByKey,
    pub(super) bytes: u64,
}

impl Head {
    /// An empty partition.
    pub(super) fn new(schema: Arc<ContainerSchema>, lsn: Lsn) -> Head {
        Head { lsn, schema, versions: VersionVector::default(), by_key: ItemsByKey::default(), bytes: 0 }
    }

    /// How far the copy is.
    pub fn progress(&self) -> Progress {
        Progress { lsn: self.lsn, versions: self.versions.clone() }
    }

    /// A partition with these items in it.
    pub(super) fn restored(schema: Arc<ContainerSchema>, lsn: Lsn, items: &[Arc<Item>]) -> Head {
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

    /// Does again what a change did.
    pub(super) fn redo(&mut self, change: &Change) {
        match change.versions() {
            (Some(before), Some(after)) => self.replace(before, after),
            (None, Some(after)) => self.insert(after),
            (Some(before), None) => self.remove(before),
            (None, None) => {}
        }
    }

    pub(super) fn insert(&mut self, item: &Arc<Item>) {
        self.bytes += item.size() as u64;
        self.by_key.insert(item);
    }

    pub(super) fn replace(&mut self, old: &Item, new: &Arc<Item>) {
        if old.id == new.id {
            self.bytes -= old.size() as u64;
        } else {
            self.remove(old);
        }
        self.insert(new);
    }

    pub(super) fn remove(&mut self, item: &Item) {
        self.bytes -= item.size() as u64;
        self.by_key.remove(item);
    }
}
