//! Reads the change log of one version chain of a container back from disk.
//!
//! The log on disk names the item of each change and holds the version that it superseded. The version it
//! made is found by walking backwards from the newest ones: what superseded a version holds it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::resource_id::ContainerRid;

use super::batch::Keyspace;
use super::error::OpenError;
use super::keys;
use super::layout::StoredLayout;
use super::load::{LogEntry, Source, StoredChain};
use super::values;
use crate::items::{Change, ChangeKind, Item, Ordinal};

/// A commit that was read, with its superseded versions.
struct StoredCommit {
    lsn: Lsn,
    partition: u32,
    at: u64,
    changes: Vec<StoredChange>,
}

/// One change of such a commit.
struct StoredChange {
    kind: ChangeKind,
    ordinal: Ordinal,
    superseded: Option<Arc<Item>>,
}

/// The range of LSNs that the log of one partition has.
struct LogExtent {
    first: Lsn,
    newest: Lsn,
    trimmed_to: Lsn,
}

/// Reads the log of a version chain, whose newest versions are `items`. Also returns the next ordinal, as far
/// as the log knows it.
pub(super) fn read(
    source: &Source<'_>,
    rid: ContainerRid,
    chain: u8,
    layout: &StoredLayout,
    items: &[Arc<Item>],
) -> Result<(StoredChain, u64), OpenError> {
    let prefix = keys::container_chain_prefix(rid, chain);
    let mut commits = Vec::new();
    let mut extents: BTreeMap<u32, LogExtent> = BTreeMap::new();
    let (mut broken, mut next_ordinal) = (None, 0);
    source.for_each_entry(Keyspace::Log, &prefix, &keys::prefix_end(&prefix), |key, value| {
        let (chain, lsn) = keys::read_log(key)?;
        let logged = values::read_log(value)?;
        let extent = extents.entry(chain.partition).or_insert(LogExtent {
            first: lsn,
            newest: Lsn(lsn.0.saturating_sub(1)),
            trimmed_to: Lsn(0),
        });
        // Trimmed commits may be missing; what follows them must be there.
        let follows = lsn.0 == extent.newest.0 + 1 || logged.after_gap || lsn.0 <= logged.trimmed_to.0 + 1;
        if !follows && broken.is_none() {
            broken = Some((chain.partition, extent.newest, lsn));
        }
        (extent.newest, extent.trimmed_to) = (lsn, logged.trimmed_to);
        next_ordinal = next_ordinal.max(logged.next_ordinal);
        let mut changes = Vec::with_capacity(logged.changes.len());
        for change in logged.changes {
            let superseded = change.superseded.map(|(ordinal, bytes)| values::read_item(ordinal, bytes));
            let superseded = superseded.transpose()?.map(|read| Arc::new(read.item));
            changes.push(StoredChange { kind: change.kind, ordinal: change.ordinal, superseded });
        }
        commits.push(StoredCommit { lsn, partition: chain.partition, at: logged.at, changes });
        Ok(())
    })?;
    if let Some((partition, before, after)) = broken {
        let detail = format!("range {partition}: changes between LSN {before} and {after} are missing");
        return Err(OpenError::damaged("base/log", detail));
    }
    let mut read = StoredChain { ends: ends(layout, chain, &extents), ..StoredChain::default() };
    read.unreachable = unreachable(layout, &read.ends, &extents);
    commits.sort_by_key(|commit| (commit.lsn, commit.partition));
    // Trimmed changes may be partly gone from the disk: those of the partition itself, for instance, while
    // those of its parent are still there.
    let trimmed_to = read.ends.values().map(|(_, trimmed_to)| *trimmed_to).max().unwrap_or_default();
    read.log = walk_back(commits, items, trimmed_to)?;
    Ok((read, next_ordinal))
}

/// The newest LSN of each partition that exists, and up to where its log is trimmed.
fn ends(layout: &StoredLayout, chain: u8, extents: &BTreeMap<u32, LogExtent>) -> HashMap<u32, (Lsn, Lsn)> {
    let end = |stored: &super::StoredPartition| {
        let (origin, extent) = (stored.origin(chain), extents.get(&stored.id));
        let newest = extent.map_or(origin.lsn_at_start, |extent| extent.newest.max(origin.lsn_at_start));
        let trimmed_to = extent.map_or(origin.trimmed_to, |extent| extent.trimmed_to.max(origin.trimmed_to));
        (stored.id, (newest, trimmed_to))
    };
    layout.partitions.iter().map(end).collect()
}

/// For each range that no longer exists: the LSN up to which none of its descendants needs its changes.
fn unreachable(
    layout: &StoredLayout,
    ends: &HashMap<u32, (Lsn, Lsn)>,
    extents: &BTreeMap<u32, LogExtent>,
) -> Vec<(u32, Lsn)> {
    let gone = extents.iter().filter(|(id, _)| !ends.contains_key(id));
    let unreachable = gone.filter_map(|(id, extent)| {
        let children = layout.partitions.iter().filter(|stored| stored.parents.contains(id));
        let known =
            children.filter_map(|stored| ends.get(&stored.id)).map(|(_, trimmed_to)| *trimmed_to).min();
        let until = known.unwrap_or(extent.newest);
        (extent.first <= until).then_some((*id, until))
    });
    unreachable.collect()
}

/// Finds the version that each change made. Changes up to `trimmed_to` may have lost theirs.
fn walk_back(
    mut commits: Vec<StoredCommit>,
    items: &[Arc<Item>],
    trimmed_to: Lsn,
) -> Result<Vec<LogEntry>, OpenError> {
    let mut log = Vec::new();
    let mut older: HashMap<Ordinal, Option<Arc<Item>>> = HashMap::new();
    let live = |ordinal: Ordinal| {
        let found = items.binary_search_by_key(&ordinal, |item| item.ordinal);
        found.ok().map(|at| Arc::clone(&items[at]))
    };
    for commit in commits.iter_mut().rev() {
        let count = commit.changes.len() as u32;
        for (operation, change) in (0..count).zip(commit.changes.drain(..)).rev() {
            let StoredChange { kind, ordinal, superseded } = change;
            let after = older.get(&ordinal).cloned().unwrap_or_else(|| live(ordinal));
            let (item, previous) = match (kind, superseded, after) {
                (ChangeKind::Create, _, Some(item)) => {
                    older.insert(ordinal, None);
                    (item, None)
                }
                (ChangeKind::Replace, Some(previous), Some(item)) => {
                    older.insert(ordinal, None);
                    older.insert(previous.ordinal, Some(Arc::clone(&previous)));
                    (item, Some(previous))
                }
                (ChangeKind::Delete | ChangeKind::Expire, Some(item), None) => {
                    older.insert(ordinal, Some(Arc::clone(&item)));
                    (item, None)
                }
                (_, superseded, _) if commit.lsn <= trimmed_to => {
                    older.insert(ordinal, None);
                    superseded.map(|item| older.insert(item.ordinal, Some(item)));
                    continue;
                }
                _ => {
                    let detail = format!("the change of item {} at LSN {} has no end", ordinal.0, commit.lsn);
                    return Err(OpenError::damaged("base/log", detail));
                }
            };
            let change = Change { lsn: commit.lsn, kind, item, previous, at: commit.at };
            log.push(LogEntry { partition: commit.partition, operation, change: Arc::new(change) });
        }
    }
    log.reverse();
    Ok(log)
}
