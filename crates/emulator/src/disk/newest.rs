//! Many changes, as what is left of them: the last fate of each key.

use std::collections::HashMap;

use bytes::Bytes;

use super::base::Entry;
use super::batch::{Change, Fate, Space};

/// What changes come to in one space.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Newest {
    /// The last fate of each key that was named, in order.
    pub(super) entries: Vec<Entry>,
    /// Ranges `[from, to)` of which nothing older is left but what `entries` says.
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
        let InOrder { mut entries, removed } = self;
        // Stable, so that the last of several with one key is the newest.
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries.reverse();
        entries.dedup_by(|a, b| a.0 == b.0);
        entries.reverse();
        let mut gone = vec![false; if removed.is_empty() { 0 } else { entries.len() }];
        for (from, to, at) in &removed {
            let start = entries.partition_point(|(key, ..)| key < from);
            let end = entries.partition_point(|(key, ..)| key < to).max(start);
            for (gone, (_, _, written)) in gone[start..end].iter_mut().zip(&entries[start..end]) {
                *gone |= written < at;
            }
        }
        let mut gone = gone.into_iter();
        entries.retain(|_| !gone.next().unwrap_or(false));
        Newest {
            entries: entries.into_iter().map(|(key, value, _)| (key, value)).collect(),
            removed: removed.into_iter().map(|(from, to, _)| (from, to)).collect(),
        }
    }
}

impl Newest {
    /// Whether something older under this key is gone, whatever becomes of it afterwards.
    pub(super) fn removes(&self, key: &[u8]) -> bool {
        self.removed.iter().any(|(from, to)| from[..] <= *key && *key < to[..])
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
