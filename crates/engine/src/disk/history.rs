//! What happened in a container, read back: the log of one of its lines.
//!
//! The log on disk names the item of each change and holds the version that it took away. The version
//! it made is found by walking backwards from the newest ones: what superseded a version held it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use protocol::lsn::Lsn;
use protocol::resource_id::ContainerRid;

use super::batch::Space;
use super::error::OpenError;
use super::keys;
use super::layout::KeptLayout;
use super::load::{LineRead, LoggedAt, Source};
use super::values;
use crate::items::{Change, ChangeKind, Item, Ordinal};

/// A commit that was read, its superseded versions included.
struct CommitRead {
    lsn: Lsn,
    partition: u32,
    at: u64,
    changes: Vec<ChangeRead>,
}

/// One of its changes.
struct ChangeRead {
    kind: ChangeKind,
    ordinal: Ordinal,
    superseded: Option<Arc<Item>>,
}

/// What the log of one partition says of itself.
struct Extent {
    first: Lsn,
    newest: Lsn,
    forgotten: Lsn,
}

/// Reads the log of a line, whose newest versions are `items`. Also says which ordinal comes next, as far
/// as the log knows.
pub(super) fn read(
    source: &Source<'_>,
    rid: ContainerRid,
    line: u8,
    layout: &KeptLayout,
    items: &[Arc<Item>],
) -> Result<(LineRead, u64), OpenError> {
    let prefix = keys::container_line_prefix(rid, line);
    let mut commits = Vec::new();
    let mut extents: BTreeMap<u32, Extent> = BTreeMap::new();
    let (mut broken, mut next_ordinal) = (None, 0);
    source.each(Space::Log, &prefix, &keys::behind(&prefix), |key, value| {
        let (line, lsn) = keys::read_log(key)?;
        let logged = values::read_log(value)?;
        let extent = extents.entry(line.partition).or_insert(Extent {
            first: lsn,
            newest: Lsn(lsn.0.saturating_sub(1)),
            forgotten: Lsn(0),
        });
        // What was forgotten may be gone; what follows must be there.
        let follows = lsn.0 == extent.newest.0 + 1 || logged.after_gap || lsn.0 <= logged.forgotten.0 + 1;
        if !follows && broken.is_none() {
            broken = Some((line.partition, extent.newest, lsn));
        }
        (extent.newest, extent.forgotten) = (lsn, logged.forgotten);
        next_ordinal = next_ordinal.max(logged.next_ordinal);
        let mut changes = Vec::with_capacity(logged.changes.len());
        for change in logged.changes {
            let superseded = change.superseded.map(|(ordinal, bytes)| values::read_item(ordinal, bytes));
            let superseded = superseded.transpose()?.map(Arc::new);
            changes.push(ChangeRead { kind: change.kind, ordinal: change.ordinal, superseded });
        }
        commits.push(CommitRead { lsn, partition: line.partition, at: logged.at, changes });
        Ok(())
    })?;
    if let Some((partition, before, after)) = broken {
        let detail = format!("range {partition}: changes between LSN {before} and {after} are missing");
        return Err(OpenError::damaged("base/log", detail));
    }
    let mut read = LineRead { ends: ends(layout, line, &extents), ..LineRead::default() };
    read.outlived = outlived(layout, &read.ends, &extents);
    commits.sort_by_key(|commit| (commit.lsn, commit.partition));
    // Of what a partition has forgotten, parts may be gone from the disk: those of its own, for instance,
    // when those of the range it came from are still there.
    let forgotten = read.ends.values().map(|(_, forgotten)| *forgotten).max().unwrap_or_default();
    read.log = walk_back(commits, items, forgotten)?;
    Ok((read, next_ordinal))
}

/// The newest LSN of each partition there is, and up to where its changes are no longer known.
fn ends(layout: &KeptLayout, line: u8, extents: &BTreeMap<u32, Extent>) -> HashMap<u32, (Lsn, Lsn)> {
    let end = |kept: &super::KeptPartition| {
        let (birth, extent) = (kept.birth(line), extents.get(&kept.id));
        let newest = extent.map_or(birth.born, |extent| extent.newest.max(birth.born));
        let forgotten = extent.map_or(birth.forgotten, |extent| extent.forgotten.max(birth.forgotten));
        (kept.id, (newest, forgotten))
    };
    layout.partitions.iter().map(end).collect()
}

/// For each range that is no more: up to which LSN none of those that came from it knows its changes.
fn outlived(
    layout: &KeptLayout,
    ends: &HashMap<u32, (Lsn, Lsn)>,
    extents: &BTreeMap<u32, Extent>,
) -> Vec<(u32, Lsn)> {
    let gone = extents.iter().filter(|(id, _)| !ends.contains_key(id));
    let outlived = gone.filter_map(|(id, extent)| {
        let heirs = layout.partitions.iter().filter(|kept| kept.parents.contains(id));
        let known = heirs.filter_map(|kept| ends.get(&kept.id)).map(|(_, forgotten)| *forgotten).min();
        let until = known.unwrap_or(extent.newest);
        (extent.first <= until).then_some((*id, until))
    });
    outlived.collect()
}

/// Finds the version that each change made. Changes up to `forgotten` may have lost theirs.
fn walk_back(
    mut commits: Vec<CommitRead>,
    items: &[Arc<Item>],
    forgotten: Lsn,
) -> Result<Vec<LoggedAt>, OpenError> {
    let mut log = Vec::new();
    let mut older: HashMap<Ordinal, Option<Arc<Item>>> = HashMap::new();
    let live = |ordinal: Ordinal| {
        let found = items.binary_search_by_key(&ordinal, |item| item.ordinal);
        found.ok().map(|at| Arc::clone(&items[at]))
    };
    for commit in commits.iter_mut().rev() {
        let count = commit.changes.len() as u32;
        for (operation, change) in (0..count).zip(commit.changes.drain(..)).rev() {
            let ChangeRead { kind, ordinal, superseded } = change;
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
                (_, superseded, _) if commit.lsn <= forgotten => {
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
            log.push(LoggedAt { partition: commit.partition, operation, change: Arc::new(change) });
        }
    }
    log.reverse();
    Ok(log)
}
