//! A partition's index: one persistent ordered set of entries.
//!
//! In: the terms of a document and its ordinal. Out: ordinals in the order of a term, a range of values or
//! the effective partition key. What to index is `policy`, a document's terms are `terms`, the entries
//! themselves `key` and `space`. Every operation costs the logarithm of the number of entries, and a clone
//! costs nothing, so a reader keeps its version while writers continue.

mod key;
mod policy;
mod space;
mod terms;

use std::ops::Bound;

use foldhash::fast::FixedState;
use imbl::{GenericHashMap, GenericOrdSet, OrdSet, shared_ptr::DefaultSharedPtr};

pub(crate) use key::{IndexKey, after_prefix};
pub(crate) use policy::{Policy, composite_space};
pub use space::IndexSpace;
pub(crate) use space::Step;
pub(crate) use terms::{Term, Terms, difference, follow};

use crate::items::Ordinal;

/// The index of one replica: entries in order, and their counts.
#[derive(Clone, Default, PartialEq)]
pub struct Index {
    entries: OrdSet<IndexKey>,
    counts: GenericHashMap<IndexSpace, SpaceCount, FixedState, DefaultSharedPtr>,
}

/// How many entries a space has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceCount {
    /// The number of all entries.
    pub(crate) entries: u64,
    /// Entries whose value says less than the document does: truncated strings, arrays, objects.
    pub(crate) imprecise: u64,
}

/// A half-open range of entries by their bytes.
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub(crate) from: Bound<Vec<u8>>,
    pub(crate) to: Bound<Vec<u8>>,
}

impl KeyRange {
    /// Everything that begins with `prefix`.
    pub fn prefix(prefix: Vec<u8>) -> KeyRange {
        let to = after_prefix(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
        KeyRange { from: Bound::Included(prefix), to }
    }

    /// The space that its entries begin with, if it has a beginning.
    pub(crate) fn space(&self) -> Option<[u8; 8]> {
        match &self.from {
            Bound::Included(start) | Bound::Excluded(start) => start.first_chunk().copied(),
            Bound::Unbounded => None,
        }
    }

    fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (self.from.as_ref().map(Vec::as_slice), self.to.as_ref().map(Vec::as_slice))
    }

    /// Whether nothing can lie between its ends.
    pub(crate) fn is_empty(&self) -> bool {
        match (&self.from, &self.to) {
            (Bound::Included(from), Bound::Excluded(to)) | (Bound::Excluded(from), Bound::Included(to)) => {
                from >= to
            }
            (Bound::Included(from), Bound::Included(to)) => from > to,
            (Bound::Excluded(from), Bound::Excluded(to)) => from >= to,
            _ => false,
        }
    }
}

impl Index {
    /// Adds an entry to the index.
    pub(crate) fn insert(&mut self, entry: IndexKey, imprecise: bool) {
        let (space, imprecise) = (entry.space(), u64::from(imprecise));
        match self.counts.get_mut(&space) {
            Some(count) => {
                count.entries += 1;
                count.imprecise += imprecise;
            }
            None => drop(self.counts.insert(space, SpaceCount { entries: 1, imprecise })),
        }
        let previous = self.entries.insert(entry);
        debug_assert!(previous.is_none(), "an item is indexed once per term");
    }

    /// Removes an entry from the index.
    pub(crate) fn remove(&mut self, entry: &IndexKey, imprecise: bool) {
        let removed = self.entries.remove(entry);
        debug_assert!(removed.is_some(), "what is removed was there");
        let space = entry.space();
        if let Some(count) = self.counts.get_mut(&space) {
            count.entries = count.entries.saturating_sub(1);
            count.imprecise = count.imprecise.saturating_sub(u64::from(imprecise));
            if count.entries == 0 {
                self.counts.remove(&space);
            }
        }
    }

    /// How many entries `space` has.
    pub(crate) fn count(&self, space: IndexSpace) -> SpaceCount {
        self.counts.get(&space).copied().unwrap_or_default()
    }

    /// The entries of `range`, in order, from either end.
    pub fn range(&self, range: &KeyRange) -> impl DoubleEndedIterator<Item = &IndexKey> + use<'_> {
        // The underlying range panics on crossed bounds; here an empty one is valid.
        let crossed = range.is_empty();
        let entries: &GenericOrdSet<IndexKey, DefaultSharedPtr> = &self.entries;
        (!crossed).then(|| entries.range::<_, [u8]>(range.bounds())).into_iter().flatten()
    }

    /// The first item under exactly `term` whose ordinal is at least `from`.
    pub(crate) fn seek(&self, term: &[u8], from: Ordinal) -> Option<Ordinal> {
        let entry = self.entries.get_next(&IndexKey::of_term(term, from))?;
        (entry.term() == term).then(|| entry.ordinal())
    }

    /// The number of entries in `range`, counted no further than `limit`.
    pub(crate) fn count_up_to(&self, range: &KeyRange, limit: usize) -> usize {
        self.range(range).take(limit).count()
    }

    /// The items under exactly `term`, in order of creation.
    pub(crate) fn ordinals_under(&self, term: &[u8]) -> impl Iterator<Item = Ordinal> {
        let mut next = self.seek(term, Ordinal(0));
        std::iter::from_fn(move || {
            let found = next?;
            next = self.seek(term, Ordinal(found.0 + 1));
            Some(found)
        })
    }
}
