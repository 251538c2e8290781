//! The limit of a short run of a query, after which it is interrupted.
//!
//! Most queries are done at once, and are run where their request arrived. A run with a limit finds out which
//! ones are not: it ends early, its page is dropped, and the caller runs the query again where it delays nobody.

use std::cell::Cell;

use crate::items::Item;

/// How much one run may evaluate and read.
#[derive(Debug)]
pub struct RunLimit {
    work_units: Option<u64>,
    documents_left: Cell<u64>,
    bytes_left: Cell<u64>,
    is_reached: Cell<bool>,
}

impl RunLimit {
    /// The limit of a run that may take as long as a request may.
    pub const fn none() -> RunLimit {
        RunLimit {
            work_units: None,
            documents_left: Cell::new(u64::MAX),
            bytes_left: Cell::new(u64::MAX),
            is_reached: Cell::new(false),
        }
    }

    /// The limit of a run of so many work units of evaluation, and of so many items with so many bytes in all.
    pub const fn new(work_units: u64, documents: u64, bytes: u64) -> RunLimit {
        RunLimit {
            work_units: Some(work_units),
            documents_left: Cell::new(documents),
            bytes_left: Cell::new(bytes),
            is_reached: Cell::new(false),
        }
    }

    /// The work units that an execution may use, if they are limited.
    pub(super) fn work_units(&self) -> Option<u64> {
        self.work_units
    }

    /// Counts one item, and returns whether it may be read.
    pub(super) fn allow(&self, item: &Item) -> bool {
        let documents = self.documents_left.get().checked_sub(1);
        let bytes = self.bytes_left.get().checked_sub(item.size() as u64);
        match (documents, bytes) {
            (Some(documents), Some(bytes)) => {
                self.documents_left.set(documents);
                self.bytes_left.set(bytes);
                true
            }
            _ => {
                self.is_reached.set(true);
                false
            }
        }
    }

    /// Whether an item was not read because of the limit.
    pub(super) fn is_reached(&self) -> bool {
        self.is_reached.get()
    }
}
