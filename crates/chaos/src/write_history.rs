//! The history of all writes, and checks of what is read against it.
//!
//! Each item has one writer, whose versions grow. What is known of a write is its [`WriteOutcome`]: an acknowledged
//! write must never be lost; a rejected one must never be visible; one whose response was lost may become visible at any
//! time, also over later versions, because it is unknown when the account applies it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use perihelion::ErrorKind;

/// What the client knows about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The account acknowledged the write.
    Acknowledged,
    /// The response was lost: the write may have been applied or not.
    Undecided,
    /// The write failed and changed nothing.
    Rejected,
}

impl WriteOutcome {
    /// The outcome of a write that succeeded, or failed with an error of this kind.
    pub fn of(failure: Option<ErrorKind>) -> WriteOutcome {
        match failure {
            None => WriteOutcome::Acknowledged,
            Some(ErrorKind::Undecided) => WriteOutcome::Undecided,
            Some(_) => WriteOutcome::Rejected,
        }
    }
}

/// What the version of an item that was read says about the guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadCheck {
    /// The version is allowed.
    Consistent,
    /// An undecided write was applied after a later one. This is allowed, because nothing bounds when it is applied.
    LateWrite,
    /// The version is older than an acknowledged one, which is lost.
    Lost,
    /// The version is that of a rejected write.
    Rejected,
    /// The version was never written.
    Impossible,
}

/// The writes of one item.
#[derive(Debug, Default)]
pub struct ItemHistory {
    acknowledged: u64,
    newest: u64,
    undecided: BTreeSet<u64>,
    rejected: BTreeSet<u64>,
}

impl ItemHistory {
    /// Begins a write and returns its version.
    pub fn begin_write(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// Records the outcome of a write.
    pub fn end_write(&mut self, version: u64, outcome: WriteOutcome) {
        match outcome {
            WriteOutcome::Acknowledged => self.acknowledged = self.acknowledged.max(version),
            WriteOutcome::Undecided => drop(self.undecided.insert(version)),
            WriteOutcome::Rejected => drop(self.rejected.insert(version)),
        }
    }

    /// The newest version that was acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Checks the version `found` by a read that began when `floor` was the newest acknowledged version.
    pub fn check_read(&self, floor: u64, found: u64) -> ReadCheck {
        if found > self.newest {
            ReadCheck::Impossible
        } else if self.rejected.contains(&found) {
            ReadCheck::Rejected
        } else if found >= floor {
            ReadCheck::Consistent
        } else if self.undecided.contains(&found) {
            ReadCheck::LateWrite
        } else {
            ReadCheck::Lost
        }
    }

    /// The number of undecided writes.
    pub fn undecided(&self) -> usize {
        self.undecided.len()
    }
}

/// The history of all writes of a run.
#[derive(Debug)]
pub struct WriteHistory {
    items: usize,
    histories: Vec<Mutex<ItemHistory>>,
    /// The creates of each worker, by the sequence number of the operation.
    creates: Vec<Mutex<BTreeMap<u64, WriteOutcome>>>,
}

impl WriteHistory {
    /// An empty history of this many workers with this many items each.
    pub fn new(workers: usize, items: usize) -> WriteHistory {
        WriteHistory {
            items,
            histories: (0..workers * items).map(|_| Mutex::default()).collect(),
            creates: (0..workers).map(|_| Mutex::default()).collect(),
        }
    }

    /// The history of one item of a worker, locked.
    pub fn item(&self, worker: usize, item: usize) -> MutexGuard<'_, ItemHistory> {
        lock(&self.histories[worker * self.items + item])
    }

    /// Records the outcome of a create.
    pub fn record_create(&self, worker: usize, sequence: u64, outcome: WriteOutcome) {
        lock(&self.creates[worker]).insert(sequence, outcome);
    }

    /// All creates with their worker, sequence number and outcome.
    pub fn creates(&self) -> Vec<(usize, u64, WriteOutcome)> {
        let of = |(worker, creates): (usize, &Mutex<BTreeMap<u64, WriteOutcome>>)| -> Vec<_> {
            lock(creates).iter().map(|(sequence, outcome)| (worker, *sequence, *outcome)).collect()
        };
        self.creates.iter().enumerate().flat_map(of).collect()
    }

    /// The number of undecided writes and creates.
    pub fn undecided(&self) -> usize {
        let written: usize = self.histories.iter().map(|history| lock(history).undecided()).sum();
        written + self.creates().iter().filter(|(_, _, outcome)| *outcome == WriteOutcome::Undecided).count()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_read_are_checked_against_the_writes() {
        let mut history = ItemHistory::default();
        let outcomes = [
            WriteOutcome::Acknowledged,
            WriteOutcome::Undecided,
            WriteOutcome::Acknowledged,
            WriteOutcome::Rejected,
            WriteOutcome::Acknowledged,
        ];
        for outcome in outcomes {
            let version = history.begin_write();
            history.end_write(version, outcome);
        }
        let in_flight = history.begin_write();
        assert_eq!(history.acknowledged(), 5);
        for (floor, found, expected) in [
            (5, 5, ReadCheck::Consistent),
            (5, in_flight, ReadCheck::Consistent),
            (3, 3, ReadCheck::Consistent),
            (5, 3, ReadCheck::Lost),
            (5, 0, ReadCheck::Lost),
            (0, 0, ReadCheck::Consistent),
            (5, 2, ReadCheck::LateWrite),
            (1, 2, ReadCheck::Consistent),
            (3, 4, ReadCheck::Rejected),
            (5, 7, ReadCheck::Impossible),
        ] {
            assert_eq!(history.check_read(floor, found), expected, "{found} after {floor}");
        }
    }

    #[test]
    fn the_kind_of_an_error_decides_the_outcome_of_a_write() {
        assert_eq!(WriteOutcome::of(None), WriteOutcome::Acknowledged);
        assert_eq!(WriteOutcome::of(Some(ErrorKind::Undecided)), WriteOutcome::Undecided);
        for kind in [ErrorKind::Unavailable, ErrorKind::DeadlineExceeded, ErrorKind::Throttled] {
            assert_eq!(WriteOutcome::of(Some(kind)), WriteOutcome::Rejected, "{kind}");
        }
    }
}
