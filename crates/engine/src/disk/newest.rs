//! Many changes, as what is left of them: the last fate of each key.

use std::collections::{BinaryHeap, HashMap};

use bytes::Bytes;

use super::base::Entry;
use super::batch::{Change, Fate, Space};

/// What changes come to in one space.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Newest {
    /// The last fate of each key that was named, in order.
    pub(super) entries: Vec<Entry>,
    /// Ranges `[from, to)` of which nothing older is left but what `entries` says: in order, and apart
    /// from each other.
    pub(super) removed: Vec<(Bytes, Bytes)>,
}

/// What `changes` come to, by space.
pub(super) fn newest(changes: Vec<Change>) -> HashMap<Space, Newest> {
    let mut spaces: HashMap<Space, InOrder> = HashMap::new();
    for (at, Change { space, key, fate }) in changes.into_iter().enumerate() {
        let space = spaces.entry(space).or_default();
        match fate {
            Fate::Put(value) => space.entries.push((key, Some(value), at)),
            Fate::Removed => space.entries.push((key, None, at)),
            Fate::RemovedUpTo(to) => space.removed.push((key, to, at)),
        }
    }
    spaces.into_iter().map(|(space, changes)| (space, changes.newest())).collect()
}

/// The changes of one space, each with its place among all.
#[derive(Default)]
struct InOrder {
    entries: Vec<(Bytes, Option<Bytes>, usize)>,
    removed: Vec<(Bytes, Bytes, usize)>,
}

impl InOrder {
    fn newest(self) -> Newest {
        let InOrder { mut entries, mut removed } = self;
        // Stable, so that the last of several with one key is the newest.
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.reverse();
        entries.dedup_by(|a, b| a.0 == b.0);
        entries.reverse();
        removed.sort_unstable();
        if !removed.is_empty() {
            let mut newest = Covering::new(&removed);
            entries.retain(|(key, _, at)| newest.range_over(key).is_none_or(|removed| removed < *at));
        }
        Newest {
            entries: entries.into_iter().map(|(key, value, _)| (key, value)).collect(),
            removed: apart(removed),
        }
    }
}

/// Finds the newest range over each of several keys that come in order.
struct Covering<'a> {
    /// Those that begin behind the last key, in order.
    ahead: &'a [(Bytes, Bytes, usize)],
    /// Those that began before it, the newest first. Some of them may have ended.
    begun: BinaryHeap<(usize, &'a Bytes)>,
}

impl<'a> Covering<'a> {
    fn new(ranges: &'a [(Bytes, Bytes, usize)]) -> Covering<'a> {
        Covering { ahead: ranges, begun: BinaryHeap::new() }
    }

    fn range_over(&mut self, key: &Bytes) -> Option<usize> {
        while let Some(((from, to, at), rest)) = self.ahead.split_first().filter(|(next, _)| next.0 <= *key) {
            if from < to {
                self.begun.push((*at, to));
            }
            self.ahead = rest;
        }
        while self.begun.peek().is_some_and(|(_, to)| *to <= key) {
            self.begun.pop();
        }
        self.begun.peek().map(|(at, _)| *at)
    }
}

/// The same ranges, put together where they touch.
fn apart(ranges: Vec<(Bytes, Bytes, usize)>) -> Vec<(Bytes, Bytes)> {
    let mut apart: Vec<(Bytes, Bytes)> = Vec::new();
    for (from, to, _) in ranges.into_iter().filter(|(from, to, _)| from < to) {
        match apart.last_mut().filter(|(_, end)| from <= *end) {
            Some((_, end)) => *end = to.max(std::mem::take(end)),
            None => apart.push((from, to)),
        }
    }
    apart
}

impl Newest {
    /// Whether something older under this key is gone, whatever becomes of it afterwards.
    pub(super) fn removes(&self, key: &[u8]) -> bool {
        let begun = self.removed.partition_point(|(from, _)| from[..] <= *key);
        begun.checked_sub(1).is_some_and(|last| *key < self.removed[last].1[..])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn change((key, fate, value): (u8, u8, u8)) -> Change {
        let bytes = |byte: u8| Bytes::copy_from_slice(&[byte % 16]);
        let fate = match fate % 5 {
            0 => Fate::Removed,
            1 => Fate::RemovedUpTo(bytes(value)),
            _ => Fate::Put(bytes(value)),
        };
        Change { space: Space::Items, key: bytes(key), fate }
    }

    proptest! {
        #[test]
        fn what_is_left_is_what_doing_it_all_in_order_leaves(before: Vec<(u8, u8)>, changes: Vec<(u8, u8, u8)>) {
            let bytes = |byte: u8| Bytes::copy_from_slice(&[byte % 16]);
            let base: BTreeMap<Bytes, Bytes> =
                before.into_iter().map(|(key, value)| (bytes(key), bytes(value))).collect();
            let changes: Vec<Change> = changes.into_iter().map(change).collect();
            let mut expected = base.clone();
            for Change { key, fate, .. } in changes.clone() {
                match fate {
                    Fate::Put(value) => drop(expected.insert(key, value)),
                    Fate::Removed => drop(expected.remove(&key)),
                    Fate::RemovedUpTo(to) => expected.retain(|other, _| *other < key || *other >= to),
                }
            }
            let newest = newest(changes).remove(&Space::Items).unwrap_or_default();
            prop_assert!(newest.entries.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert!(newest.removed.is_sorted_by(|a, b| a.1 < b.0));
            let mut left = base;
            left.retain(|key, _| !newest.removes(key));
            for (key, value) in newest.entries {
                match value {
                    Some(value) => drop(left.insert(key, value)),
                    None => drop(left.remove(&key)),
                }
            }
            prop_assert_eq!(left, expected);
        }
    }
}
