//! Everything that was kept, read back.
//!
//! The base and the journal are one sorted sequence here, in which the journal wins. Items are read in
//! parts on every core, because they are most of it; what belongs where is sorted out by the store.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use protocol::lsn::Lsn;
use protocol::resource_id::ContainerRid;

use super::base::{Base, Entry};
use super::batch::{Change as DiskChange, Space};
use super::coding::{Malformed, Reader};
use super::error::OpenError;
use super::keys::{self, CatalogKey};
use super::replay::in_parallel;
use super::values;
use crate::store::{Change, ChangeKind, Item, Ordinal};

/// Items that are read in one go.
const PART: u64 = 16 * 1024;

/// What a directory holds.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    /// The account's resources: what stands under each key.
    pub(crate) catalog: Vec<(CatalogKey, Bytes)>,
    /// The contents of each container that exists.
    pub(crate) containers: HashMap<ContainerRid, ItemsRead>,
}

/// The contents of one container.
#[derive(Debug, Default)]
pub(crate) struct ItemsRead {
    /// In order of creation.
    pub(crate) items: Vec<Arc<Item>>,
    /// In order of LSN; those of one partition in the order they happened.
    pub(crate) log: Vec<LoggedAt>,
    /// For each partition that anything was written to: the newest LSN, and up to where its changes
    /// are no longer known.
    pub(crate) ends: HashMap<u32, (Lsn, Lsn)>,
    /// The ordinal the next item gets.
    pub(crate) next_ordinal: u64,
}

/// One change, and where it happened.
#[derive(Debug)]
pub(crate) struct LoggedAt {
    pub(crate) partition: u32,
    /// Its place in its commit.
    pub(crate) operation: u32,
    pub(crate) change: Arc<Change>,
}

/// The newest journal record that is in the base.
pub(super) fn settled(base: &Base) -> Result<u64, OpenError> {
    let key = CatalogKey::Settled.to_bytes();
    match base.range(Space::Catalog, &key, &keys::behind(&key)).next() {
        None => Ok(0),
        Some(entry) => {
            let (_, value) = entry?;
            Reader::new(&value).number().map_err(|error| OpenError::damaged("base/catalog", error))
        }
    }
}

/// Reads everything in `base`, as `changes` left it.
pub(super) fn load(base: &Base, changes: Vec<DiskChange>) -> Result<Opened, OpenError> {
    let source = Source { base, newer: newest(changes) };
    let mut catalog = Vec::new();
    source.each(Space::Catalog, &[], &[0xFF], |key, value| {
        catalog.push((CatalogKey::read(key)?, Bytes::copy_from_slice(value)));
        Ok(())
    })?;
    let containers = catalog.iter().filter_map(|(key, _)| match key {
        CatalogKey::Container(rid) => Some(*rid),
        _ => None,
    });
    let containers = containers.map(|rid| Ok((rid, container(&source, rid)?)));
    let containers = containers.collect::<Result<_, OpenError>>()?;
    Ok(Opened { catalog, containers })
}

/// The last fate of each key, by space and in order.
pub(super) fn newest(changes: Vec<DiskChange>) -> HashMap<Space, Vec<Entry>> {
    let mut spaces: HashMap<Space, Vec<Entry>> = HashMap::new();
    for DiskChange { space, key, value } in changes {
        spaces.entry(space).or_default().push((key, value));
    }
    for entries in spaces.values_mut() {
        // Stable, so that the last of several with one key is the newest.
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.reverse();
        entries.dedup_by(|a, b| a.0 == b.0);
        entries.reverse();
    }
    spaces
}

/// The base, and what is newer.
struct Source<'a> {
    base: &'a Base,
    newer: HashMap<Space, Vec<Entry>>,
}

impl Source<'_> {
    fn newer(&self, space: Space, from: &[u8], to: &[u8]) -> &[Entry] {
        let entries = self.newer.get(&space).map_or(&[][..], Vec::as_slice);
        let start = entries.partition_point(|(key, _)| &key[..] < from);
        let end = entries.partition_point(|(key, _)| &key[..] < to);
        &entries[start..end.max(start)]
    }

    /// Shows `see` every key in `[from, to)` with its value, in order.
    fn each(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> Result<(), Malformed>,
    ) -> Result<(), OpenError> {
        let damaged = |error: Malformed| OpenError::damaged(format!("base/{}", space.name()), error);
        let mut newer = self.newer(space, from, to);
        for entry in self.base.range(space, from, to) {
            let (key, value) = entry?;
            let key = key.as_ref();
            let before = newer.partition_point(|(newer, _)| &newer[..] < key);
            for (key, value) in &newer[..before] {
                value.as_ref().map_or(Ok(()), |value| see(key, value)).map_err(damaged)?;
            }
            newer = &newer[before..];
            if newer.first().is_none_or(|(newer, _)| newer[..] != *key) {
                see(key, &value).map_err(damaged)?;
            }
        }
        for (key, value) in newer {
            value.as_ref().map_or(Ok(()), |value| see(key, value)).map_err(damaged)?;
        }
        Ok(())
    }

    fn last_key(&self, space: Space, from: &[u8], to: &[u8]) -> Result<Option<Vec<u8>>, OpenError> {
        let newer = self.newer(space, from, to).last().map(|(key, _)| key.to_vec());
        Ok(self.base.last_key(space, from, to)?.max(newer))
    }
}

fn container(source: &Source<'_>, rid: ContainerRid) -> Result<ItemsRead, OpenError> {
    let items = items(source, rid)?;
    let mut read = ItemsRead { next_ordinal: 1, ..ItemsRead::default() };
    read.next_ordinal = items.last().map_or(1, |item| item.ordinal.0 + 1);
    log(source, rid, &items, &mut read)?;
    read.items = items;
    Ok(read)
}

fn items(source: &Source<'_>, rid: ContainerRid) -> Result<Vec<Arc<Item>>, OpenError> {
    let from = keys::item(rid, 0, Ordinal(0));
    let behind = keys::item(rid, 0, Ordinal(u64::MAX));
    let last = match source.last_key(Space::Items, &from, &behind)? {
        None => return Ok(Vec::new()),
        Some(key) => keys::read_item(&key).map_err(|error| OpenError::damaged("base/items", error))?.2,
    };
    let parts = usize::try_from(last.0 / PART + 1).expect("items fit into memory");
    let parts = in_parallel(parts, |part| {
        let start = part as u64 * PART;
        let (from, to) = (keys::item(rid, 0, Ordinal(start)), keys::item(rid, 0, Ordinal(start + PART)));
        let mut items = Vec::with_capacity(PART as usize);
        source.each(Space::Items, &from, &to, |key, value| {
            let (_, _, ordinal) = keys::read_item(key)?;
            items.push(Arc::new(values::read_item(ordinal, value)?));
            Ok(())
        })?;
        Ok(items)
    });
    let parts = parts.into_iter().collect::<Result<Vec<_>, OpenError>>()?;
    Ok(parts.concat())
}

/// A commit that was read, its superseded versions included.
struct CommitRead {
    lsn: Lsn,
    partition: u32,
    at: u64,
    changes: Vec<(ChangeKind, Ordinal, Option<Arc<Item>>)>,
}

/// Reads the log of a container and finds the version each change made, walking backwards: what
/// superseded a version held it.
fn log(
    source: &Source<'_>,
    rid: ContainerRid,
    items: &[Arc<Item>],
    read: &mut ItemsRead,
) -> Result<(), OpenError> {
    let prefix = keys::container_prefix(rid);
    let mut commits = Vec::new();
    let mut lines: BTreeMap<u32, (Lsn, Lsn)> = BTreeMap::new();
    let mut broken = None;
    source.each(Space::Log, &prefix, &keys::behind(&prefix), |key, value| {
        let (line, lsn) = keys::read_log(key)?;
        let logged = values::read_log(value)?;
        if let Some((newest, _)) = lines.get(&line.partition) {
            // What was forgotten may be gone; what follows must be there.
            if lsn.0 != newest.0 + 1 && lsn.0 > logged.forgotten.0 + 1 && broken.is_none() {
                broken = Some((line.partition, *newest, lsn));
            }
        }
        lines.insert(line.partition, (lsn, logged.forgotten));
        read.next_ordinal = read.next_ordinal.max(logged.next_ordinal);
        let mut changes = Vec::with_capacity(logged.changes.len());
        for change in logged.changes {
            let superseded = change.superseded.map(|bytes| values::read_item(change.ordinal, bytes));
            changes.push((change.kind, change.ordinal, superseded.transpose()?.map(Arc::new)));
        }
        commits.push(CommitRead { lsn, partition: line.partition, at: logged.at, changes });
        Ok(())
    })?;
    if let Some((partition, before, after)) = broken {
        let detail = format!("range {partition}: changes between LSN {before} and {after} are missing");
        return Err(OpenError::damaged("base/log", detail));
    }
    commits.sort_by_key(|commit| (commit.lsn, commit.partition));
    read.ends = lines.into_iter().collect();
    let mut older: HashMap<Ordinal, Option<Arc<Item>>> = HashMap::new();
    let live = |ordinal: Ordinal| {
        let found = items.binary_search_by_key(&ordinal, |item| item.ordinal);
        found.ok().map(|at| Arc::clone(&items[at]))
    };
    for commit in commits.iter_mut().rev() {
        let count = commit.changes.len() as u32;
        let mut made = Vec::with_capacity(commit.changes.len());
        for (operation, (kind, ordinal, superseded)) in (0..count).zip(commit.changes.drain(..)).rev() {
            let after = older.get(&ordinal).cloned().unwrap_or_else(|| live(ordinal));
            let (item, previous) = match (kind, superseded, after) {
                (ChangeKind::Create, _, Some(item)) => {
                    older.insert(ordinal, None);
                    (item, None)
                }
                (ChangeKind::Replace, Some(previous), Some(item)) => {
                    older.insert(ordinal, Some(Arc::clone(&previous)));
                    (item, Some(previous))
                }
                (ChangeKind::Delete | ChangeKind::Expire, Some(item), None) => {
                    older.insert(ordinal, Some(Arc::clone(&item)));
                    (item, None)
                }
                _ => {
                    let detail = format!("the change of item {} at LSN {} has no end", ordinal.0, commit.lsn);
                    return Err(OpenError::damaged("base/log", detail));
                }
            };
            let change = Change { lsn: commit.lsn, kind, item, previous, at: commit.at };
            made.push(LoggedAt { partition: commit.partition, operation, change: Arc::new(change) });
        }
        read.log.extend(made);
    }
    read.log.reverse();
    Ok(())
}
