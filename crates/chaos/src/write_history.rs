//! What was promised about every item, and whether what is found keeps it.
//!
//! An item's versions only grow, and one writer owns it. What is known of a write is its [`Fate`]: an
//! acknowledged one must never be lost; one that was said to have changed nothing must never be seen; one
//! whose answer was lost may show up at any time, also over later ones, because nobody knows when it arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use perihelion::ErrorKind;

/// What is known of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The account said it was done.
    Acknowledged,
    /// Nobody knows.
    Undecided,
    /// The client said that nothing was changed.
    Refused,
}

impl Fate {
    /// What an answer tells.
    pub fn of(failure: Option<ErrorKind>) -> Fate {
        match failure {
            None => Fate::Acknowledged,
            Some(ErrorKind::Undecided) => Fate::Undecided,
            Some(_) => Fate::Refused,
        }
    }
}

/// What an item that was found means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// As promised.
    Fine,
    /// An undecided write arrived over a later one. Allowed: it happened when it happened.
    Resurfaced,
    /// A version from before an acknowledged one: that one is lost.
    Lost,
    /// A version of which the client said that it was not written.
    Refused,
    /// A version nobody ever wrote.
    Impossible,
}

/// What is known of one item's versions.
#[derive(Debug, Default)]
pub struct History {
    acknowledged: u64,
    newest: u64,
    undecided: BTreeSet<u64>,
    refused: BTreeSet<u64>,
}

impl History {
    /// A version to write.
    pub fn begin(&mut self) -> u64 {
        self.newest += 1;
        self.newest
    }

    /// What became of it.
    pub fn end(&mut self, version: u64, fate: Fate) {
        match fate {
            Fate::Acknowledged => self.acknowledged = self.acknowledged.max(version),
            Fate::Undecided => drop(self.undecided.insert(version)),
            Fate::Refused => drop(self.refused.insert(version)),
        }
    }

    /// The newest version that was acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// What it means that `found` was found by a reader that began when `floor` was acknowledged.
    pub fn judge(&self, floor: u64, found: u64) -> Finding {
        if found > self.newest {
            Finding::Impossible
        } else if self.refused.contains(&found) {
            Finding::Refused
        } else if found >= floor {
            Finding::Fine
        } else if self.undecided.contains(&found) {
            Finding::Resurfaced
        } else {
            Finding::Lost
        }
    }

    /// How many writes are undecided.
    pub fn undecided(&self) -> usize {
        self.undecided.len()
    }
}

/// What was promised about every item.
#[derive(Debug)]
pub struct Ledger {
    items: usize,
    histories: Vec<Mutex<History>>,
    /// By worker, then by the turn that made it.
    made: Vec<Mutex<BTreeMap<u64, Fate>>>,
}

impl Ledger {
    /// For so many workers with so many items each.
    pub fn new(workers: usize, items: usize) -> Ledger {
        Ledger {
            items,
            histories: (0..workers * items).map(|_| Mutex::default()).collect(),
            made: (0..workers).map(|_| Mutex::default()).collect(),
        }
    }

    /// The history of a worker's item.
    pub fn history(&self, worker: usize, item: usize) -> MutexGuard<'_, History> {
        lock(&self.histories[worker * self.items + item])
    }

    /// What became of an item that a worker made.
    pub fn made(&self, worker: usize, turn: u64, fate: Fate) {
        lock(&self.made[worker]).insert(turn, fate);
    }

    /// Everything that workers made, or tried to.
    pub fn all_made(&self) -> Vec<(usize, u64, Fate)> {
        let of = |(worker, made): (usize, &Mutex<BTreeMap<u64, Fate>>)| -> Vec<_> {
            lock(made).iter().map(|(turn, fate)| (worker, *turn, *fate)).collect()
        };
        self.made.iter().enumerate().flat_map(of).collect()
    }

    /// How many writes are undecided.
    pub fn undecided(&self) -> usize {
        let written: usize = self.histories.iter().map(|history| lock(history).undecided()).sum();
        written + self.all_made().iter().filter(|(_, _, fate)| *fate == Fate::Undecided).count()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_held_against_what_was_promised() {
        let mut history = History::default();
        let fates =
            [Fate::Acknowledged, Fate::Undecided, Fate::Acknowledged, Fate::Refused, Fate::Acknowledged];
        for fate in fates {
            let version = history.begin();
            history.end(version, fate);
        }
        let under_way = history.begin();
        assert_eq!(history.acknowledged(), 5);
        for (floor, found, finding) in [
            (5, 5, Finding::Fine),
            (5, under_way, Finding::Fine),
            (3, 3, Finding::Fine),
            (5, 3, Finding::Lost),
            (5, 0, Finding::Lost),
            (0, 0, Finding::Fine),
            (5, 2, Finding::Resurfaced),
            (1, 2, Finding::Fine),
            (3, 4, Finding::Refused),
            (5, 7, Finding::Impossible),
        ] {
            assert_eq!(history.judge(floor, found), finding, "{found} after {floor}");
        }
    }

    #[test]
    fn an_error_says_what_became_of_a_write() {
        assert_eq!(Fate::of(None), Fate::Acknowledged);
        assert_eq!(Fate::of(Some(ErrorKind::Undecided)), Fate::Undecided);
        for kind in [ErrorKind::Unavailable, ErrorKind::DeadlineExceeded, ErrorKind::Throttled] {
            assert_eq!(Fate::of(Some(kind)), Fate::Refused, "{kind}");
        }
    }
}
