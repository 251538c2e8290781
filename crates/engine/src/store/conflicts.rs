//! Versions that lost, for people to look at: the conflicts feed.

use std::collections::VecDeque;
use std::sync::Arc;

use protocol::partition::EpkRange;

use super::inbox::Letter;
use crate::items::Item;

/// Conflicts kept per partition; the oldest go first.
const CONFLICTS_MAX: usize = 1_000;

/// One version that was not taken.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// What was attempted: `create`, `replace` or `delete`.
    pub operation: &'static str,
    /// The version that lost; none for a deletion.
    pub item: Option<Arc<Item>>,
    /// The version that stayed.
    pub winner: Option<Arc<Item>>,
    /// The number under which it is found.
    pub number: u64,
}

/// The conflicts of one partition, oldest first.
#[derive(Debug, Default)]
pub struct Conflicts {
    kept: VecDeque<Conflict>,
    last: u64,
}

impl Conflict {
    pub(super) fn of(letter: &Letter, present: Option<Arc<Item>>) -> Conflict {
        let operation = match (&letter.base, &letter.item) {
            (_, None) => "delete",
            (None, Some(_)) => "create",
            (Some(_), Some(_)) => "replace",
        };
        Conflict { operation, item: letter.item.clone(), winner: present, number: 0 }
    }
}

impl Conflict {
    pub(super) fn is_within(&self, range: &EpkRange) -> bool {
        let item = self.item.as_ref().or(self.winner.as_ref());
        item.is_some_and(|item| range.contains(&item.epk))
    }
}

impl Conflicts {
    /// Those that were kept, of which the last ever had the number `last`.
    pub(super) fn restored(kept: Vec<Conflict>, last: u64) -> Conflicts {
        Conflicts { kept: kept.into(), last }
    }

    /// The number of the last one there ever was.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Which one goes when another comes.
    pub(super) fn yields(&self) -> Option<u64> {
        let full = self.kept.len() >= CONFLICTS_MAX;
        self.kept.front().filter(|_| full).map(|conflict| conflict.number)
    }

    pub(super) fn add(&mut self, conflict: Conflict) {
        self.last += 1;
        if self.kept.len() >= CONFLICTS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Conflict { number: self.last, ..conflict });
    }

    /// Whether there is one with this number.
    pub(super) fn contains(&self, number: u64) -> bool {
        self.kept.iter().any(|conflict| conflict.number == number)
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Conflict> {
        self.kept.iter()
    }

    /// Forgets one; says whether it was there.
    pub(super) fn remove(&mut self, number: u64) -> bool {
        let before = self.kept.len();
        self.kept.retain(|conflict| conflict.number != number);
        self.kept.len() < before
    }
}
