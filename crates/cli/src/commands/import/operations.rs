//! The entries of a file as bulk operations, with the line of each.
//!
//! The thread that reads the file makes the operations ([`ImportEntry::of`]); [`OperationStream`] gives them to the bulk.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::Stream;
use futures::stream::unfold;
use perihelion::{BulkOperation, Error, ErrorKind, PartitionKeyDefinition};
use tokio::sync::mpsc;

use crate::arguments::OnError;
use crate::fixtures::{Entry, Item};

/// An entry of the file as an operation, or the reason why it is invalid.
#[derive(Debug)]
pub(super) struct ImportEntry {
    line: u64,
    operation: Result<BulkOperation, String>,
}

impl ImportEntry {
    /// The operation of an entry, for a container with this partition key.
    pub(super) fn of(entry: Entry, key: &PartitionKeyDefinition) -> ImportEntry {
        ImportEntry { line: entry.line, operation: entry.text.and_then(|text| upsert(text, key)) }
    }
}

/// The operations in the order of the file. An invalid entry becomes an operation that fails.
pub(super) struct OperationStream {
    entries: mpsc::Receiver<ImportEntry>,
    on_error: OnError,
    lines: Arc<LineNumbers>,
    /// The number of operations so far, which is the index of the next one.
    count: u64,
    ended: bool,
}

/// The line numbers of the operations that have no result yet.
#[derive(Debug, Default)]
pub(super) struct LineNumbers {
    waiting: Mutex<HashMap<u64, u64>>,
    at_end: AtomicBool,
}

impl LineNumbers {
    fn record(&self, index: u64, line: u64) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(index, line);
    }

    /// Removes and returns the line of the operation with this index.
    pub(super) fn take(&self, index: u64) -> u64 {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&index).unwrap_or_default()
    }

    /// Whether the whole file was read.
    pub(super) fn at_end(&self) -> bool {
        // Pairs with the release store below: a caller that sees the end also sees all recorded lines.
        self.at_end.load(Ordering::Acquire)
    }
}

impl OperationStream {
    pub(super) fn new(
        entries: mpsc::Receiver<ImportEntry>,
        on_error: OnError,
        lines: Arc<LineNumbers>,
    ) -> OperationStream {
        OperationStream { entries, on_error, lines, count: 0, ended: false }
    }

    /// The operations until the end of the file, or with [`OnError::Stop`] until the first invalid entry.
    pub(super) fn stream(self) -> impl Stream<Item = BulkOperation> + Send {
        unfold(self, async |mut operations| Some((operations.next().await?, operations)))
    }

    async fn next(&mut self) -> Option<BulkOperation> {
        if self.ended {
            return None;
        }
        let Some(ImportEntry { line, operation }) = self.entries.recv().await else {
            self.lines.at_end.store(true, Ordering::Release);
            return None;
        };
        self.lines.record(self.count, line);
        self.count += 1;
        Some(operation.unwrap_or_else(|reason| {
            self.ended = self.on_error == OnError::Stop;
            BulkOperation::failed(Error::new(ErrorKind::BadRequest, reason))
        }))
    }
}

/// The upsert of an item, or the reason why the item is invalid.
fn upsert(text: String, definition: &PartitionKeyDefinition) -> Result<BulkOperation, String> {
    let item = Item::parse(&text)?;
    item.check()?;
    let key = item.partition_key(definition);
    Ok(BulkOperation::upsert_json(key, text))
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    async fn operations_of(on_error: OnError, texts: &[&str]) -> (Vec<BulkOperation>, Arc<LineNumbers>) {
        let (entries_in, entries) = mpsc::channel(texts.len());
        let key = PartitionKeyDefinition::hash("/pk").expect("a path");
        for (text, line) in texts.iter().zip(10..) {
            let entry = Entry { line, text: Ok((*text).to_owned()) };
            entries_in.send(ImportEntry::of(entry, &key)).await.expect("room");
        }
        drop(entries_in);
        let lines = Arc::new(LineNumbers::default());
        let operations = OperationStream::new(entries, on_error, Arc::clone(&lines));
        (operations.stream().collect().await, lines)
    }

    #[tokio::test]
    async fn the_first_invalid_entry_ends_the_stream_if_asked_to() {
        let texts = ["{\"id\":\"1\"}", "{oops}", "{\"id\":\"2\"}"];
        for (on_error, count, at_end) in [(OnError::Skip, 3, true), (OnError::Stop, 2, false)] {
            let (operations, lines) = operations_of(on_error, &texts).await;
            assert_eq!((operations.len(), lines.at_end()), (count, at_end), "{on_error:?}");
            assert_eq!((lines.take(0), lines.take(1)), (10, 11));
            assert!(format!("{:?}", operations[1]).contains("not JSON"), "{:?}", operations[1]);
        }
    }
}
