//! Items that go to the same partition, put together until they fill a request. Pure.

use std::collections::HashMap;

use protocol::partition_range::RangeId;

use crate::account_client::{Ranges, Upsert};

/// Operations of one request, as accounts allow.
const ITEMS_MAX: usize = 100;
/// Bytes of one request. Accounts allow more; several middling requests are served sooner than one
/// large one, and throttled less.
const BYTES_MAX: usize = 200 * 1024;
/// Bytes of all requests that are not full yet: a container can have thousands of partitions.
const PENDING_BYTES_MAX: usize = 32 * 1024 * 1024;

/// An item and where it was.
#[derive(Clone, Debug)]
pub(super) struct Numbered {
    pub(super) line: u64,
    pub(super) item: Upsert,
}

/// Items for one request.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) items: Vec<Numbered>,
    bytes: usize,
}

/// What waits to be sent, by partition.
#[derive(Debug, Default)]
pub(super) struct Batches {
    /// None stands for items whose partition is not known, which the sender finds out.
    pending: HashMap<Option<RangeId>, Batch>,
    bytes: usize,
}

impl Batches {
    /// Takes an item in; gives back what is to be sent now.
    pub(super) fn add(&mut self, item: Numbered, ranges: &Ranges) -> Option<Batch> {
        let (range, bytes) = (ranges.of(&item.item.place), item.item.bytes());
        let batch = self.pending.entry(range).or_default();
        // What would overflow begins the next one.
        let full = !batch.items.is_empty() && batch.bytes + bytes > BYTES_MAX;
        let before = if full { std::mem::take(batch) } else { Batch::default() };
        batch.items.push(item);
        batch.bytes += bytes;
        self.bytes = (self.bytes + bytes).saturating_sub(before.bytes);
        if full {
            return Some(before);
        }
        if batch.items.len() >= ITEMS_MAX || batch.bytes >= BYTES_MAX {
            return self.take(range);
        }
        if self.bytes > PENDING_BYTES_MAX { self.take_largest() } else { None }
    }

    /// The fullest of those that are not full, or nothing if nothing waits.
    pub(super) fn take_largest(&mut self) -> Option<Batch> {
        let largest = self.pending.iter().max_by_key(|(_, batch)| batch.bytes).map(|(range, _)| *range);
        self.take(largest?)
    }

    fn take(&mut self, range: Option<RangeId>) -> Option<Batch> {
        let batch = self.pending.remove(&range).filter(|batch| !batch.items.is_empty())?;
        self.bytes = self.bytes.saturating_sub(batch.bytes);
        Some(batch)
    }
}

#[cfg(test)]
mod tests {
    use protocol::container::PartitionKeyDefinition;
    use protocol::partition::{PartitionKey, PartitionKeyComponent};

    use super::*;

    fn item(line: u64, bytes: usize) -> Numbered {
        let definition = PartitionKeyDefinition::hash("/pk").unwrap();
        let key = PartitionKey::new(vec![PartitionKeyComponent::Null]);
        Numbered { line, item: Upsert::new(&key, &definition, "x".repeat(bytes)) }
    }

    fn sizes(batches: &mut Batches, items: impl Iterator<Item = Numbered>) -> Vec<usize> {
        items
            .filter_map(|item| batches.add(item, &Ranges::default()))
            .map(|batch| batch.items.len())
            .collect()
    }

    #[test]
    fn a_request_is_full_by_count_or_by_bytes() {
        let mut batches = Batches::default();
        assert_eq!(sizes(&mut batches, (0..250).map(|line| item(line, 10))), [100, 100]);
        assert_eq!(batches.take_largest().map(|batch| batch.items.len()), Some(50));
        assert!(batches.take_largest().is_none());
        assert_eq!(sizes(&mut batches, (0..5).map(|line| item(line, 90 * 1024))), [2, 2]);
        assert_eq!(batches.take_largest().map(|batch| batch.items[0].line), Some(4));
        assert_eq!(batches.bytes, 0);
    }

    #[test]
    fn a_large_item_goes_alone() {
        let mut batches = Batches::default();
        let items = [item(1, 10), item(2, 1024 * 1024), item(3, 10)];
        assert_eq!(sizes(&mut batches, items.into_iter()), [1, 1]);
        assert_eq!(batches.take_largest().map(|batch| batch.items[0].line), Some(3));
    }
}
