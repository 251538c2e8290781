//! Entries of the file as operations, and where each of them was.
//!
//! The thread that reads the file makes the operations ([`Fed::of`]); [`Feed`] hands them to the bulk.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures::Stream;
use futures::stream::unfold;
use perihelion::{BulkOperation, Error, ErrorKind, PartitionKeyDefinition};
use tokio::sync::mpsc;

use crate::arguments::OnError;
use crate::fixtures::{Entry, Item};

/// An entry of the file as an operation, or why it is none.
#[derive(Debug)]
pub(super) struct Fed {
    line: u64,
    operation: Result<BulkOperation, String>,
}

impl Fed {
    /// An entry for a container with this key.
    pub(super) fn of(entry: Entry, key: &PartitionKeyDefinition) -> Fed {
        Fed { line: entry.line, operation: entry.text.and_then(|text| upsert(text, key)) }
    }
}

/// Operations as they are read. An entry that is none takes its turn as a failure.
pub(super) struct Feed {
    entries: mpsc::Receiver<Fed>,
    on_error: OnError,
    lines: Arc<Lines>,
    /// How many there were.
    count: u64,
    ended: bool,
}

/// Where the operations that have no result yet were in the file; no more than are under way.
#[derive(Debug, Default)]
pub(super) struct Lines {
    waiting: Mutex<HashMap<u64, u64>>,
    at_end: AtomicBool,
}

impl Lines {
    fn note(&self, index: u64, line: u64) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(index, line);
    }

    /// Where the operation with this number was.
    pub(super) fn take(&self, index: u64) -> u64 {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&index).unwrap_or_default()
    }

    /// Whether everything was read.
    pub(super) fn at_end(&self) -> bool {
        self.at_end.load(Ordering::Acquire)
    }
}

impl Feed {
    pub(super) fn new(entries: mpsc::Receiver<Fed>, on_error: OnError, lines: Arc<Lines>) -> Feed {
        Feed { entries, on_error, lines, count: 0, ended: false }
    }

    /// The operations, until the end or the first entry that cannot be one, as was asked for.
    pub(super) fn stream(self) -> impl Stream<Item = BulkOperation> + Send {
        unfold(self, async |mut feed| Some((feed.next().await?, feed)))
    }

    async fn next(&mut self) -> Option<BulkOperation> {
        if self.ended {
            return None;
        }
        let Some(Fed { line, operation }) = self.entries.recv().await else {
            self.lines.at_end.store(true, Ordering::Release);
            return None;
        };
        self.lines.note(self.count, line);
        self.count += 1;
        Some(operation.unwrap_or_else(|reason| {
            self.ended = self.on_error == OnError::Stop;
            BulkOperation::failed(Error::new(ErrorKind::BadRequest, reason))
        }))
    }
}

/// An entry as it is sent, if it can be.
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

    async fn fed(on_error: OnError, texts: &[&str]) -> (Vec<BulkOperation>, Arc<Lines>) {
        let (entries_in, entries) = mpsc::channel(texts.len());
        let key = PartitionKeyDefinition::hash("/pk").expect("a path");
        for (text, line) in texts.iter().zip(10..) {
            let entry = Entry { line, text: Ok((*text).to_owned()) };
            entries_in.send(Fed::of(entry, &key)).await.expect("room");
        }
        drop(entries_in);
        let lines = Arc::new(Lines::default());
        let feed = Feed::new(entries, on_error, Arc::clone(&lines));
        (feed.stream().collect().await, lines)
    }

    #[tokio::test]
    async fn the_first_bad_entry_ends_it_or_not() {
        let texts = ["{\"id\":\"1\"}", "{oops}", "{\"id\":\"2\"}"];
        for (on_error, count, at_end) in [(OnError::Skip, 3, true), (OnError::Stop, 2, false)] {
            let (operations, lines) = fed(on_error, &texts).await;
            assert_eq!((operations.len(), lines.at_end()), (count, at_end), "{on_error:?}");
            assert_eq!((lines.take(0), lines.take(1)), (10, 11));
            assert!(format!("{:?}", operations[1]).contains("not JSON"), "{:?}", operations[1]);
        }
    }
}
