//! Reads everything that the data directory stores.
//!
//! The trees and the journal are one sorted sequence here, in which the journal wins. Items are read in parts
//! on every core, because they are most of it; the store divides them among partitions.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use protocol::lsn::Lsn;
use protocol::resource_id::{ContainerRid, ItemRid};

use super::batch::{Batch, KeyChange, Keyspace};
use super::coalesce::{CoalescedChanges, coalesce};
use super::encoding::{Malformed, Reader};
use super::error::OpenError;
use super::history;
use super::keys::{self, CatalogKey, ChainKey, ReplicationEntry, ReplicationKey};
use super::layout::StoredLayout;
use super::regions::StoredRegions;
use super::replay::in_parallel;
use super::trees::{Entry, Trees};
use super::values::{self, ReadItem};
use crate::items::{Change, Item, Ordinal};

/// Ordinals that one part covers.
const PART_ORDINALS: u64 = 16 * 1024;

/// The account that a data directory holds.
#[derive(Debug, Default)]
pub(crate) struct StoredAccount {
    /// The account's resources: the value of each key.
    pub(crate) catalog: Vec<(CatalogKey, Bytes)>,
    /// The contents of each container that exists.
    pub(crate) containers: HashMap<ContainerRid, StoredContents>,
    /// Items whose stored text is not JSON, in words.
    pub(super) damaged_items: Vec<String>,
}

impl StoredAccount {
    /// The stored regions of the account.
    pub(crate) fn regions(&self) -> Option<StoredRegions> {
        let (_, value) = self.catalog.iter().find(|(key, _)| *key == CatalogKey::Regions)?;
        // Malformed values were rejected when the directory was opened.
        serde_json::from_slice(value).ok()
    }

    /// A batch that removes what can no longer be read: the logs of ranges that no longer exist, as far as
    /// their descendants have trimmed theirs.
    pub(super) fn cleanup(&self) -> Result<Batch, Malformed> {
        let mut batch = Batch::new(0);
        let unreachable = self
            .containers
            .iter()
            .filter(|(_, read)| read.chains.iter().any(|chain| !chain.unreachable.is_empty()));
        for (rid, read) in unreachable {
            for (number, chain) in (0..).zip(&read.chains) {
                for (partition, until) in &chain.unreachable {
                    let chain = ChainKey { container: *rid, chain: number, partition: *partition };
                    let (from, to) =
                        (keys::log(chain, Lsn(0)), keys::log(chain, Lsn(until.0.saturating_add(1))));
                    batch.remove_range(Keyspace::Log, &from, &to);
                }
            }
            // The next ordinal may have been stored only there.
            let key = CatalogKey::Layout(*rid);
            if let Some((_, layout)) = self.catalog.iter().find(|(other, _)| *other == key) {
                let layout = StoredLayout { next_ordinal: read.next_ordinal, ..StoredLayout::read(layout)? };
                batch.put(Keyspace::Catalog, &key.to_bytes(), |to| layout.put(to));
            }
        }
        Ok(batch)
    }
}

/// The stored contents of one container.
#[derive(Debug, Default)]
pub(crate) struct StoredContents {
    /// One version chain, or one for each region where all of them write.
    pub(crate) chains: Vec<StoredChain>,
    /// What is stored about each partition's replicas where every region writes.
    pub(crate) replication: HashMap<u32, Vec<(ReplicationEntry, Bytes)>>,
    /// The ordinal that the next item gets.
    pub(crate) next_ordinal: u64,
}

/// The stored contents of one container in one version chain.
#[derive(Debug, Default)]
pub(crate) struct StoredChain {
    /// The items in order of creation.
    pub(crate) items: Vec<Arc<Item>>,
    /// The log in order of LSN; changes of one partition in the order they were made.
    pub(crate) log: Vec<LogEntry>,
    /// For each partition that exists: the newest LSN, and up to where its log is trimmed.
    pub(crate) ends: HashMap<u32, (Lsn, Lsn)>,
    /// For each partition that no longer exists: the LSN up to which its changes can no longer be read.
    pub(crate) unreachable: Vec<(u32, Lsn)>,
}

/// One change, and the partition it was made in.
#[derive(Debug)]
pub(crate) struct LogEntry {
    pub(crate) partition: u32,
    /// Its number in its commit.
    pub(crate) operation: u32,
    pub(crate) change: Arc<Change>,
}

/// The newest journal record that has been checkpointed.
pub(super) fn checkpointed(trees: &Trees) -> Result<u64, OpenError> {
    let key = CatalogKey::Checkpointed.to_bytes();
    match trees.range(Keyspace::Catalog, &key, &keys::prefix_end(&key)).next() {
        None => Ok(0),
        Some(entry) => {
            let (_, value) = entry?;
            Reader::new(&value).number().map_err(|error| OpenError::damaged("base/catalog", error))
        }
    }
}

/// Reads the stored resources of the account.
pub(super) fn catalog(source: &Source<'_>) -> Result<Vec<(CatalogKey, Bytes)>, OpenError> {
    let mut catalog = Vec::new();
    source.for_each_entry(Keyspace::Catalog, &[], &[0xFF], |key, value| {
        catalog.push((CatalogKey::read(key)?, Bytes::copy_from_slice(value)));
        Ok(())
    })?;
    Ok(catalog)
}

/// Reads everything else: `chains` version chains of each container in `catalog`.
pub(super) fn load(
    source: &Source<'_>,
    catalog: Vec<(CatalogKey, Bytes)>,
    chains: u8,
) -> Result<StoredAccount, OpenError> {
    let layouts = catalog.iter().filter_map(|(key, value)| match key {
        CatalogKey::Layout(rid) => Some((*rid, value)),
        _ => None,
    });
    let containers = layouts.map(|(rid, layout)| {
        let layout = StoredLayout::read(layout).map_err(|error| OpenError::damaged("base/catalog", error))?;
        Ok((rid, container(source, rid, &layout, chains)?))
    });
    let containers = containers.collect::<Result<_, OpenError>>()?;
    let mut damaged_items = std::mem::take(&mut *source.damaged_items.lock());
    // Several regions may have the item.
    damaged_items.sort();
    damaged_items.dedup();
    Ok(StoredAccount { catalog, containers, damaged_items })
}

/// The trees, and the newer changes of the journal.
pub(super) struct Source<'a> {
    trees: &'a Trees,
    newer: HashMap<Keyspace, CoalescedChanges>,
    /// Items that were read and whose text is not JSON.
    damaged_items: Mutex<Vec<String>>,
}

impl<'a> Source<'a> {
    /// The trees as `changes` leave them.
    pub(super) fn new(trees: &'a Trees, changes: Vec<KeyChange>) -> Source<'a> {
        Source { trees, newer: coalesce(changes), damaged_items: Mutex::default() }
    }
}

impl Source<'_> {
    fn newer(&self, space: Keyspace, from: &[u8], to: &[u8]) -> &[Entry] {
        let entries = self.newer.get(&space).map_or(&[][..], |newer| newer.entries.as_slice());
        let start = entries.partition_point(|(key, _)| &key[..] < from);
        let end = entries.partition_point(|(key, _)| &key[..] < to);
        &entries[start..end.max(start)]
    }

    /// Calls `visit` with every key in `[from, to)` and its value, in order.
    pub(super) fn for_each_entry(
        &self,
        space: Keyspace,
        from: &[u8],
        to: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), Malformed>,
    ) -> Result<(), OpenError> {
        let damaged = |error: Malformed| OpenError::damaged(format!("base/{}", space.name()), error);
        let mut newer = self.newer(space, from, to);
        let all = self.newer.get(&space).filter(|newer| !newer.removed.is_empty());
        for entry in self.trees.range(space, from, to) {
            let (key, value) = entry?;
            let key = key.as_ref();
            if all.is_some_and(|all| all.removes(key)) {
                continue;
            }
            let before = newer.partition_point(|(newer, _)| &newer[..] < key);
            for (key, value) in &newer[..before] {
                value.as_ref().map_or(Ok(()), |value| visit(key, value)).map_err(damaged)?;
            }
            newer = &newer[before..];
            if newer.first().is_none_or(|(newer, _)| newer[..] != *key) {
                visit(key, &value).map_err(damaged)?;
            }
        }
        for (key, value) in newer {
            value.as_ref().map_or(Ok(()), |value| visit(key, value)).map_err(damaged)?;
        }
        Ok(())
    }

    fn last_key(&self, space: Keyspace, from: &[u8], to: &[u8]) -> Result<Option<Vec<u8>>, OpenError> {
        let newer = self.newer(space, from, to).last().map(|(key, _)| key.to_vec());
        Ok(self.trees.last_key(space, from, to)?.max(newer))
    }
}

fn container(
    source: &Source<'_>,
    rid: ContainerRid,
    layout: &StoredLayout,
    chains: u8,
) -> Result<StoredContents, OpenError> {
    let mut read = StoredContents { next_ordinal: layout.next_ordinal.max(1), ..StoredContents::default() };
    for chain in 0..chains {
        let items = items(source, rid, chain)?;
        let (mut chain, next_ordinal) = history::read(source, rid, chain, layout, &items)?;
        let after_last = items.last().map_or(1, |item| item.ordinal.0 + 1);
        read.next_ordinal = read.next_ordinal.max(next_ordinal).max(after_last);
        chain.items = items;
        read.chains.push(chain);
    }
    let prefix = keys::container_prefix(rid);
    source.for_each_entry(Keyspace::Replication, &prefix, &keys::prefix_end(&prefix), |key, value| {
        let ReplicationKey { partition, what, .. } = ReplicationKey::read(key)?;
        read.replication.entry(partition).or_default().push((what, Bytes::copy_from_slice(value)));
        Ok(())
    })?;
    Ok(read)
}

fn items(source: &Source<'_>, rid: ContainerRid, chain: u8) -> Result<Vec<Arc<Item>>, OpenError> {
    let from = keys::item(rid, chain, Ordinal(0));
    let to = keys::item(rid, chain, Ordinal(u64::MAX));
    let last = match source.last_key(Keyspace::Items, &from, &to)? {
        None => return Ok(Vec::new()),
        Some(key) => keys::read_item(&key).map_err(|error| OpenError::damaged("base/items", error))?.2,
    };
    let parts = usize::try_from(last.0 / PART_ORDINALS + 1).expect("items fit into memory");
    let parts = in_parallel(parts, |part| {
        let start = part as u64 * PART_ORDINALS;
        let (from, to) =
            (keys::item(rid, chain, Ordinal(start)), keys::item(rid, chain, Ordinal(start + PART_ORDINALS)));
        let mut items = Vec::with_capacity(PART_ORDINALS as usize);
        source.for_each_entry(Keyspace::Items, &from, &to, |key, value| {
            let (_, _, ordinal) = keys::read_item(key)?;
            let ReadItem { item, repaired } = values::read_item(ordinal, value)?;
            if repaired {
                let rid = ItemRid { container: rid, ordinal: ordinal.0 };
                source.damaged_items.lock().push(format!("item '{}' ({})", item.id, rid));
            }
            items.push(Arc::new(item));
            Ok(())
        })?;
        Ok(items)
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>, OpenError>>()?;
    Ok(parts.concat())
}
