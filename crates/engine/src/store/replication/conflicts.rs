//! The conflicts feed: versions that lost against another region's.

use std::collections::VecDeque;
use std::sync::Arc;

use protocol::partition::EpkRange;

use crate::items::Item;
use crate::store::replication::message::ReplicationMessage;

/// Conflicts that a partition retains; the oldest are dropped first.
const CONFLICTS_MAX: usize = 1_000;

/// One version that lost a conflict.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// What was attempted: `create`, `replace` or `delete`.
    pub operation: &'static str,
    /// The version that lost; none for a deletion.
    pub item: Option<Arc<Item>>,
    /// The version that won.
    pub winner: Option<Arc<Item>>,
    /// The number of the conflict, which is its id in the feed.
    pub number: u64,
}

/// The conflicts of one partition, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Conflicts {
    stored: VecDeque<Conflict>,
    last: u64,
}

impl Conflict {
    pub(in crate::store) fn of(message: &ReplicationMessage, present: Option<Arc<Item>>) -> Conflict {
        let operation = match (&message.base, &message.item) {
            (_, None) => "delete",
            (None, Some(_)) => "create",
            (Some(_), Some(_)) => "replace",
        };
        Conflict { operation, item: message.item.clone(), winner: present, number: 0 }
    }
}

impl Conflict {
    pub(in crate::store) fn is_within(&self, range: &EpkRange) -> bool {
        let item = self.item.as_ref().or(self.winner.as_ref());
        item.is_some_and(|item| range.contains(&item.epk))
    }
}

impl Conflicts {
    /// Conflicts read from disk; the last one ever had the number `last`.
    pub(in crate::store) fn restored(stored: Vec<Conflict>, last: u64) -> Conflicts {
        Conflicts { stored: stored.into(), last }
    }

    /// The number of the last conflict so far.
    pub(in crate::store) fn last(&self) -> u64 {
        self.last
    }

    /// The number of the conflict that the next one evicts, if the feed is full.
    pub(in crate::store) fn next_evicted(&self) -> Option<u64> {
        let full = self.stored.len() >= CONFLICTS_MAX;
        self.stored.front().filter(|_| full).map(|conflict| conflict.number)
    }

    pub(in crate::store) fn add(&mut self, conflict: Conflict) {
        self.last += 1;
        if self.stored.len() >= CONFLICTS_MAX {
            self.stored.pop_front();
        }
        self.stored.push_back(Conflict { number: self.last, ..conflict });
    }

    /// Whether there is a conflict with this number.
    pub(in crate::store) fn contains(&self, number: u64) -> bool {
        self.stored.iter().any(|conflict| conflict.number == number)
    }

    /// All conflicts, oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Conflict> {
        self.stored.iter()
    }

    /// Removes a conflict. Returns whether it was there.
    pub(in crate::store) fn remove(&mut self, number: u64) -> bool {
        let before = self.stored.len();
        self.stored.retain(|conflict| conflict.number != number);
        self.stored.len() < before
    }
}
