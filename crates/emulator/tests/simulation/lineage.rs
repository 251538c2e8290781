//! Which version of an item came from which: where all regions write there is no single order.
//!
//! Pure. A version replaces the one its writer saw. What a client has seen may give way to a version
//! that did not know it, never to one that it came from.

use std::collections::BTreeMap;

/// An item, by partition key and id.
pub(crate) type ItemName = (String, String);

/// Every acknowledged version of every item, by the number nobody else has.
#[derive(Default)]
pub(crate) struct VersionLineage {
    versions: BTreeMap<u64, Version>,
}

struct Version {
    item: ItemName,
    /// What it replaced; nothing for a new item.
    base: Option<u64>,
    /// Whether it is a deletion.
    is_deletion: bool,
}

impl VersionLineage {
    pub(crate) fn record(&mut self, v: u64, item: ItemName, base: Option<u64>, gone: bool) {
        self.versions.insert(v, Version { item, base, is_deletion: gone });
    }

    /// Whether a client that has seen `seen` of an item may be shown `shown`, or that there is none.
    pub(crate) fn may_follow(&self, item: &ItemName, seen: u64, shown: Option<u64>) -> bool {
        match shown {
            Some(shown) => !self.ancestors(seen).any(|ancestor| ancestor == shown),
            // Somebody deleted it, without or after having seen it.
            None => {
                let mut deletions = self.of(item).filter(|(_, version)| version.is_deletion);
                deletions.any(|(v, _)| !self.ancestors(seen).any(|ancestor| ancestor == *v))
            }
        }
    }

    /// An acknowledged version that came from `last`, or from nothing where there is none, although
    /// that is what stayed.
    pub(crate) fn lost_version(&self, item: &ItemName, last: Option<u64>) -> Option<u64> {
        match last {
            Some(last) => {
                let mut all = self.of(item);
                all.find(|(v, _)| self.ancestors(**v).any(|ancestor| ancestor == last)).map(|(v, _)| *v)
            }
            None if self.of(item).any(|(_, version)| version.is_deletion) => None,
            None => self.of(item).map(|(v, _)| *v).next(),
        }
    }

    /// Whether anybody wrote this version of the item.
    pub(crate) fn contains(&self, item: &ItemName, v: u64) -> bool {
        self.versions.get(&v).is_some_and(|version| version.item == *item)
    }

    fn of<'a>(&'a self, item: &'a ItemName) -> impl Iterator<Item = (&'a u64, &'a Version)> {
        self.versions.iter().filter(move |(_, version)| version.item == *item)
    }

    fn ancestors(&self, v: u64) -> impl Iterator<Item = u64> {
        let base = |v: &u64| self.versions.get(v).and_then(|version| version.base);
        std::iter::successors(base(&v), move |v| base(v))
    }
}
