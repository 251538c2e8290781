//! The lineage of versions: which version of an item replaced which, where several regions write.
//!
//! Pure. A version replaces the one that its writer saw. A client may see a version replaced by a concurrent
//! one, never by one of its ancestors.

use std::collections::BTreeMap;

/// An item, by partition key and id.
pub(crate) type ItemName = (String, String);

/// Every acknowledged version of every item, by its unique number.
#[derive(Default)]
pub(crate) struct VersionLineage {
    versions: BTreeMap<u64, Version>,
}

struct Version {
    item: ItemName,
    /// The version that it replaced; none for a new item.
    base: Option<u64>,
    /// Whether it is a deletion.
    is_deletion: bool,
}

impl VersionLineage {
    pub(crate) fn record(&mut self, v: u64, item: ItemName, base: Option<u64>, gone: bool) {
        self.versions.insert(v, Version { item, base, is_deletion: gone });
    }

    /// Whether a client that has seen the version `seen` may read `shown` next, or no item.
    pub(crate) fn may_follow(&self, item: &ItemName, seen: u64, shown: Option<u64>) -> bool {
        match shown {
            Some(shown) => !self.ancestors(seen).any(|ancestor| ancestor == shown),
            // There must be a deletion that is not an ancestor of the seen version.
            None => {
                let mut deletions = self.of(item).filter(|(_, version)| version.is_deletion);
                deletions.any(|(v, _)| !self.ancestors(seen).any(|ancestor| ancestor == *v))
            }
        }
    }

    /// An acknowledged descendant of the version `last` that remained, which therefore was lost.
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

    /// Whether this version of the item was written.
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
