//! Everything that was kept, read back.
//!
//! The base and the journal are one sorted sequence here, in which the journal wins. Items are read in
//! parts on every core, because they are most of it; what belongs where is sorted out by the store.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use protocol::lsn::Lsn;
use protocol::resource_id::ContainerRid;

use super::base::{Base, Entry};
use super::batch::{Batch, Change as DiskChange, Space};
use super::coding::{Malformed, Reader};
use super::error::OpenError;
use super::history;
use super::keys::{self, CatalogKey, LineKey, MeshEntry, MeshKey};
use super::layout::KeptLayout;
use super::newest::{Newest, newest};
use super::regions::KeptRegions;
use super::replay::in_parallel;
use super::values;
use crate::items::{Change, Item, Ordinal};

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

impl Opened {
    /// What was kept of the account's regions.
    pub(crate) fn regions(&self) -> Option<KeptRegions> {
        let (_, value) = self.catalog.iter().find(|(key, _)| *key == CatalogKey::Regions)?;
        // Looked at when it was opened.
        serde_json::from_slice(value).ok()
    }

    /// Takes away what nobody can ask for any more: the changes of ranges that are no more, as far as
    /// those that came from them have forgotten theirs.
    pub(super) fn tidying(&self) -> Result<Batch, Malformed> {
        let mut batch = Batch::new(0);
        let outlived = self
            .containers
            .iter()
            .filter(|(_, read)| read.lines.iter().any(|line| !line.outlived.is_empty()));
        for (rid, read) in outlived {
            for (number, line) in (0..).zip(&read.lines) {
                for (partition, until) in &line.outlived {
                    let line = LineKey { container: *rid, line: number, partition: *partition };
                    let (from, to) =
                        (keys::log(line, Lsn(0)), keys::log(line, Lsn(until.0.saturating_add(1))));
                    batch.remove_range(Space::Log, &from, &to);
                }
            }
            // Which ordinal comes next may have been known only there.
            let key = CatalogKey::Layout(*rid);
            if let Some((_, layout)) = self.catalog.iter().find(|(other, _)| *other == key) {
                let layout = KeptLayout { next_ordinal: read.next_ordinal, ..KeptLayout::read(layout)? };
                batch.put(Space::Catalog, &key.to_bytes(), |to| layout.put(to));
            }
        }
        Ok(batch)
    }
}

/// The contents of one container.
#[derive(Debug, Default)]
pub(crate) struct ItemsRead {
    /// One, or one for each region where all of them write.
    pub(crate) lines: Vec<LineRead>,
    /// What is kept of each partition where every region writes.
    pub(crate) mesh: HashMap<u32, Vec<(MeshEntry, Bytes)>>,
    /// The ordinal the next item gets.
    pub(crate) next_ordinal: u64,
}

/// The contents of one container, as one writing region has them.
#[derive(Debug, Default)]
pub(crate) struct LineRead {
    /// In order of creation.
    pub(crate) items: Vec<Arc<Item>>,
    /// In order of LSN; those of one partition in the order they happened.
    pub(crate) log: Vec<LoggedAt>,
    /// For each partition there is: the newest LSN, and up to where its changes are no longer known.
    pub(crate) ends: HashMap<u32, (Lsn, Lsn)>,
    /// For each partition there was whose changes nobody can ask for any more: up to which LSN.
    pub(crate) outlived: Vec<(u32, Lsn)>,
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

/// The resources in `base`, as the changes in `source` left them.
pub(super) fn catalog(source: &Source<'_>) -> Result<Vec<(CatalogKey, Bytes)>, OpenError> {
    let mut catalog = Vec::new();
    source.each(Space::Catalog, &[], &[0xFF], |key, value| {
        catalog.push((CatalogKey::read(key)?, Bytes::copy_from_slice(value)));
        Ok(())
    })?;
    Ok(catalog)
}

/// Reads everything else: `lines` of each container in `catalog`.
pub(super) fn load(
    source: &Source<'_>,
    catalog: Vec<(CatalogKey, Bytes)>,
    lines: u8,
) -> Result<Opened, OpenError> {
    let layouts = catalog.iter().filter_map(|(key, value)| match key {
        CatalogKey::Layout(rid) => Some((*rid, value)),
        _ => None,
    });
    let containers = layouts.map(|(rid, layout)| {
        let layout = KeptLayout::read(layout).map_err(|error| OpenError::damaged("base/catalog", error))?;
        Ok((rid, container(source, rid, &layout, lines)?))
    });
    let containers = containers.collect::<Result<_, OpenError>>()?;
    Ok(Opened { catalog, containers })
}

/// The base, and what is newer.
pub(super) struct Source<'a> {
    base: &'a Base,
    newer: HashMap<Space, Newest>,
}

impl<'a> Source<'a> {
    /// `base`, as `changes` left it.
    pub(super) fn new(base: &'a Base, changes: Vec<DiskChange>) -> Source<'a> {
        Source { base, newer: newest(changes) }
    }
}

impl Source<'_> {
    fn newer(&self, space: Space, from: &[u8], to: &[u8]) -> &[Entry] {
        let entries = self.newer.get(&space).map_or(&[][..], |newer| newer.entries.as_slice());
        let start = entries.partition_point(|(key, _)| &key[..] < from);
        let end = entries.partition_point(|(key, _)| &key[..] < to);
        &entries[start..end.max(start)]
    }

    /// Shows `see` every key in `[from, to)` with its value, in order.
    pub(super) fn each(
        &self,
        space: Space,
        from: &[u8],
        to: &[u8],
        mut see: impl FnMut(&[u8], &[u8]) -> Result<(), Malformed>,
    ) -> Result<(), OpenError> {
        let damaged = |error: Malformed| OpenError::damaged(format!("base/{}", space.name()), error);
        let mut newer = self.newer(space, from, to);
        let all = self.newer.get(&space).filter(|newer| !newer.removed.is_empty());
        for entry in self.base.range(space, from, to) {
            let (key, value) = entry?;
            let key = key.as_ref();
            if all.is_some_and(|all| all.removes(key)) {
                continue;
            }
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

fn container(
    source: &Source<'_>,
    rid: ContainerRid,
    layout: &KeptLayout,
    lines: u8,
) -> Result<ItemsRead, OpenError> {
    let mut read = ItemsRead { next_ordinal: layout.next_ordinal.max(1), ..ItemsRead::default() };
    for line in 0..lines {
        let items = items(source, rid, line)?;
        let (mut line, next_ordinal) = history::read(source, rid, line, layout, &items)?;
        let after_last = items.last().map_or(1, |item| item.ordinal.0 + 1);
        read.next_ordinal = read.next_ordinal.max(next_ordinal).max(after_last);
        line.items = items;
        read.lines.push(line);
    }
    let prefix = keys::container_prefix(rid);
    source.each(Space::Mesh, &prefix, &keys::behind(&prefix), |key, value| {
        let MeshKey { partition, what, .. } = MeshKey::read(key)?;
        read.mesh.entry(partition).or_default().push((what, Bytes::copy_from_slice(value)));
        Ok(())
    })?;
    Ok(read)
}

fn items(source: &Source<'_>, rid: ContainerRid, line: u8) -> Result<Vec<Arc<Item>>, OpenError> {
    let from = keys::item(rid, line, Ordinal(0));
    let behind = keys::item(rid, line, Ordinal(u64::MAX));
    let last = match source.last_key(Space::Items, &from, &behind)? {
        None => return Ok(Vec::new()),
        Some(key) => keys::read_item(&key).map_err(|error| OpenError::damaged("base/items", error))?.2,
    };
    let parts = usize::try_from(last.0 / PART + 1).expect("items fit into memory");
    let parts = in_parallel(parts, |part| {
        let start = part as u64 * PART;
        let (from, to) =
            (keys::item(rid, line, Ordinal(start)), keys::item(rid, line, Ordinal(start + PART)));
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
