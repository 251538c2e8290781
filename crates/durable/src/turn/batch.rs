//! The operations of a turn, and whether they fit into one batch.

use perihelion::Batch;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::Result;

/// The largest number of operations of a batch.
pub(super) const OPERATIONS_MAX: usize = 100;
/// The largest size of the documents of a batch, which leaves room for what surrounds them within 2 MB.
pub(super) const BYTES_MAX: usize = 1_800_000;
/// What an operation takes beside its document.
const OPERATION_BYTES: usize = 160;

/// One operation of a batch, with its document as JSON text.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Create(Box<RawValue>),
    Upsert(Box<RawValue>),
    Delete(String),
}

impl Write {
    pub(super) fn create(document: &impl Serialize) -> Result<Write> {
        Ok(Write::Create(to_raw_value(document)?))
    }

    pub(super) fn upsert(document: &impl Serialize) -> Result<Write> {
        Ok(Write::Upsert(to_raw_value(document)?))
    }

    pub(super) fn bytes(&self) -> usize {
        OPERATION_BYTES
            + match self {
                Write::Create(document) | Write::Upsert(document) => document.get().len(),
                Write::Delete(id) => id.len(),
            }
    }

    /// Adds the operation to a batch.
    pub(super) fn add_to(&self, batch: Batch) -> Batch {
        match self {
            Write::Create(document) => batch.create(document),
            Write::Upsert(document) => batch.upsert(document),
            Write::Delete(id) => batch.delete(id),
        }
    }
}

/// Splits writes into batches that the service takes, of at most this many operations.
pub(super) fn split(writes: Vec<Write>, operations_max: usize) -> Vec<Vec<Write>> {
    let mut batches: Vec<Vec<Write>> = Vec::new();
    let mut bytes = 0;
    for write in writes {
        let size = write.bytes();
        match batches.last_mut() {
            Some(last) if last.len() < operations_max && bytes + size <= BYTES_MAX => {
                bytes += size;
                last.push(write);
            }
            _ => {
                bytes = size;
                batches.push(vec![write]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_split_by_number_and_by_size() {
        let deletes = (0..250).map(|n| Write::Delete(n.to_string())).collect();
        assert_eq!(split(deletes, OPERATIONS_MAX).iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        let large = (0..5).map(|_| Write::create(&"x".repeat(700_000)).expect("text")).collect();
        assert_eq!(split(large, OPERATIONS_MAX).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
        assert!(split(Vec::new(), OPERATIONS_MAX).is_empty());
    }
}
