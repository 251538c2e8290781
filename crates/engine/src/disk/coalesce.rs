//! Coalesces many key changes into the last operation on each key.

use std::collections::{BinaryHeap, HashMap};

use bytes::Bytes;

use super::batch::{KeyChange, KeyOperation, Keyspace};
use super::trees::Entry;

/// The coalesced changes of one keyspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CoalescedChanges {
    /// The last operation on each key that was named, in order.
    pub(super) entries: Vec<Entry>,
    /// Removed ranges `[from, to)`, of which only what `entries` says is left: in order, and disjoint.
    pub(super) removed: Vec<(Bytes, Bytes)>,
}

/// Coalesces `changes`, by keyspace.
pub(super) fn coalesce(changes: Vec<KeyChange>) -> HashMap<Keyspace, CoalescedChanges> {
    let mut spaces: HashMap<Keyspace, OrderedChanges> = HashMap::new();
    for (at, KeyChange { space, key, operation }) in changes.into_iter().enumerate() {
        let space = spaces.entry(space).or_default();
        match operation {
            KeyOperation::Put(value) => space.entries.push((key, Some(value), at)),
            KeyOperation::Remove => space.entries.push((key, None, at)),
            KeyOperation::RemoveRange(to) => space.removed.push((key, to, at)),
        }
    }
    spaces.into_iter().map(|(space, changes)| (space, changes.newest())).collect()
}

/// The changes of one keyspace, each with its number among all.
#[derive(Default)]
struct OrderedChanges {
    entries: Vec<(Bytes, Option<Bytes>, usize)>,
    removed: Vec<(Bytes, Bytes, usize)>,
}

impl OrderedChanges {
    fn newest(self) -> CoalescedChanges {
        let OrderedChanges { mut entries, mut removed } = self;
        // A stable sort, so that the last of several with one key is the newest.
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.reverse();
        entries.dedup_by(|a, b| a.0 == b.0);
        entries.reverse();
        removed.sort_unstable();
        if !removed.is_empty() {
            let mut newest = RangeCover::new(&removed);
            entries.retain(|(key, _, at)| newest.range_over(key).is_none_or(|removed| removed < *at));
        }
        CoalescedChanges {
            entries: entries.into_iter().map(|(key, value, _)| (key, value)).collect(),
            removed: merge_ranges(removed),
        }
    }
}

/// Finds the newest removed range over each of several keys that come in order.
struct RangeCover<'a> {
    /// Ranges that begin after the last key, in order.
    ahead: &'a [(Bytes, Bytes, usize)],
    /// Ranges that began before the last key, the newest first. Some of them may have ended.
    partial: BinaryHeap<(usize, &'a Bytes)>,
}

impl<'a> RangeCover<'a> {
    fn new(ranges: &'a [(Bytes, Bytes, usize)]) -> RangeCover<'a> {
        RangeCover { ahead: ranges, partial: BinaryHeap::new() }
    }

    fn range_over(&mut self, key: &Bytes) -> Option<usize> {
        while let Some(((from, to, at), rest)) = self.ahead.split_first().filter(|(next, _)| next.0 <= *key) {
            if from < to {
                self.partial.push((*at, to));
            }
            self.ahead = rest;
        }
        while self.partial.peek().is_some_and(|(_, to)| *to <= key) {
            self.partial.pop();
        }
        self.partial.peek().map(|(at, _)| *at)
    }
}

/// Merges ranges that overlap or touch.
fn merge_ranges(ranges: Vec<(Bytes, Bytes, usize)>) -> Vec<(Bytes, Bytes)> {
    let mut merge_ranges: Vec<(Bytes, Bytes)> = Vec::new();
    for (from, to, _) in ranges.into_iter().filter(|(from, to, _)| from < to) {
        match merge_ranges.last_mut().filter(|(_, end)| from <= *end) {
            Some((_, end)) => *end = to.max(std::mem::take(end)),
            None => merge_ranges.push((from, to)),
        }
    }
    merge_ranges
}

impl CoalescedChanges {
    /// Whether an older value of this key has been removed by a range.
    pub(super) fn removes(&self, key: &[u8]) -> bool {
        let partial = self.removed.partition_point(|(from, _)| from[..] <= *key);
        partial.checked_sub(1).is_some_and(|last| *key < self.removed[last].1[..])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn change((key, operation, value): (u8, u8, u8)) -> KeyChange {
        let bytes = |byte: u8| Bytes::copy_from_slice(&[byte % 16]);
        let operation = match operation % 5 {
            0 => KeyOperation::Remove,
            1 => KeyOperation::RemoveRange(bytes(value)),
            _ => KeyOperation::Put(bytes(value)),
        };
        KeyChange { space: Keyspace::Items, key: bytes(key), operation }
    }

    proptest! {
        #[test]
        fn coalesced_changes_equal_all_changes_in_order(before: Vec<(u8, u8)>, changes: Vec<(u8, u8, u8)>) {
            let bytes = |byte: u8| Bytes::copy_from_slice(&[byte % 16]);
            let trees: BTreeMap<Bytes, Bytes> =
                before.into_iter().map(|(key, value)| (bytes(key), bytes(value))).collect();
            let changes: Vec<KeyChange> = changes.into_iter().map(change).collect();
            let mut expected = trees.clone();
            for KeyChange { key, operation, .. } in changes.clone() {
                match operation {
                    KeyOperation::Put(value) => drop(expected.insert(key, value)),
                    KeyOperation::Remove => drop(expected.remove(&key)),
                    KeyOperation::RemoveRange(to) => expected.retain(|other, _| *other < key || *other >= to),
                }
            }
            let newest = coalesce(changes).remove(&Keyspace::Items).unwrap_or_default();
            prop_assert!(newest.entries.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert!(newest.removed.is_sorted_by(|a, b| a.1 < b.0));
            let mut remaining = trees;
            remaining.retain(|key, _| !newest.removes(key));
            for (key, value) in newest.entries {
                match value {
                    Some(value) => drop(remaining.insert(key, value)),
                    None => drop(remaining.remove(&key)),
                }
            }
            prop_assert_eq!(remaining, expected);
        }
    }
}
