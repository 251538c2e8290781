//! Which operation is due, for every worker and turn. Pure: the same seed gives the same operations.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::scenario::{BadScenario, span};

/// The steady load of a scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Load {
    /// Workers; each does one thing at a time.
    pub workers: usize,
    /// Operations due each second, of all workers together.
    pub rate: u32,
    /// Items that every worker owns, writes and lets others read.
    pub items: usize,
    /// How often an item is read, beside the other three.
    pub read: u32,
    /// How often all items of a worker are asked for by a query over all partitions.
    pub query: u32,
    /// How often an item is written over.
    pub upsert: u32,
    /// How often an item is made.
    pub create: u32,
    /// What every operation is given.
    #[serde(with = "span")]
    pub deadline: Duration,
    /// How much later it may end: what the machine takes, not the client.
    #[serde(with = "span")]
    pub tolerance: Duration,
}

impl Default for Load {
    fn default() -> Load {
        Load {
            workers: 16,
            rate: 250,
            items: 4,
            read: 60,
            query: 5,
            upsert: 25,
            create: 10,
            deadline: Duration::from_secs(5),
            tolerance: Duration::from_millis(500),
        }
    }
}

/// What a worker does in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// Reads an item of a worker.
    Read {
        /// Whose.
        owner: usize,
        /// Which of them.
        item: usize,
    },
    /// Asks for all items of a worker.
    Query {
        /// Whose.
        owner: usize,
    },
    /// Writes an item of its own over.
    Upsert {
        /// Which of them.
        item: usize,
    },
    /// Makes an item, named after the turn.
    Create,
}

const WORKERS_MAX: usize = 1_024;
const RATE_MAX: u32 = 100_000;
const ITEMS_MAX: usize = 1_000;

impl Load {
    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<(), BadScenario> {
        let bad = |text: String| Err(BadScenario::new(text));
        if !(1..=WORKERS_MAX).contains(&self.workers) {
            return bad(format!("load.workers is {}; expected 1 to {WORKERS_MAX}", self.workers));
        }
        if !(1..=RATE_MAX).contains(&self.rate) {
            return bad(format!("load.rate is {}; expected 1 to {RATE_MAX} each second", self.rate));
        }
        if !(1..=ITEMS_MAX).contains(&self.items) {
            return bad(format!("load.items is {}; expected 1 to {ITEMS_MAX}", self.items));
        }
        if self.deadline.is_zero() {
            return bad("load.deadline is no time at all; give operations some".to_owned());
        }
        match self.weights().iter().map(|(_, weight)| u64::from(*weight)).sum::<u64>() {
            0 => bad("load.read, query, upsert and create are all 0; let something happen".to_owned()),
            _ => Ok(()),
        }
    }

    fn weights(&self) -> [(&'static str, u32); 4] {
        [("read", self.read), ("query", self.query), ("upsert", self.upsert), ("create", self.create)]
    }

    /// What a worker does in a turn.
    pub fn due(&self, seed: u64, worker: usize, turn: u64) -> Due {
        let dice = Dice::new(seed).of("worker", worker as u64).of("turn", turn);
        let total = self.weights().iter().map(|(_, weight)| u64::from(*weight)).sum::<u64>();
        let mut left = (dice.of("what", 0).uniform() * total as f64) as u64;
        let owner = dice.of("owner", 0).below(self.workers);
        let item = dice.of("item", 0).below(self.items);
        for (name, weight) in self.weights() {
            if left < u64::from(weight) {
                return match name {
                    "read" => Due::Read { owner, item },
                    "query" => Due::Query { owner },
                    "upsert" => Due::Upsert { item },
                    _ => Due::Create,
                };
            }
            left -= u64::from(weight);
        }
        Due::Create
    }

    /// When a worker's turn comes, after the start. Workers take turns evenly.
    pub fn due_at(&self, worker: usize, turn: u64) -> Duration {
        let number = turn as f64 * self.workers as f64 + worker as f64;
        Duration::from_secs_f64(number / f64::from(self.rate))
    }

    /// How many turns a worker has in this time.
    pub fn turns(&self, worker: usize, time: Duration) -> u64 {
        let numbers = time.as_secs_f64() * f64::from(self.rate) - worker as f64;
        (numbers / self.workers as f64).ceil().max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_operations_in_the_shares_that_were_asked_for() {
        let load = Load::default();
        let all = |seed| -> Vec<Due> { (0..2_000).map(|turn| load.due(seed, 3, turn)).collect() };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        let reads = all(1).iter().filter(|due| matches!(due, Due::Read { .. })).count();
        let creates = all(1).iter().filter(|due| matches!(due, Due::Create)).count();
        assert!((1_100..1_300).contains(&reads), "{reads}");
        assert!((150..250).contains(&creates), "{creates}");
        let owners: std::collections::HashSet<_> = all(1)
            .iter()
            .filter_map(|due| match due {
                Due::Read { owner, item } => Some((*owner, *item)),
                _ => None,
            })
            .collect();
        assert_eq!(owners.len(), load.workers * load.items, "everybody's items are read");
    }

    #[test]
    fn turns_are_spread_evenly_over_workers_and_time() {
        let load = Load { workers: 4, rate: 8, ..Load::default() };
        assert_eq!(load.due_at(0, 0), Duration::ZERO);
        assert_eq!(load.due_at(3, 0), Duration::from_millis(375));
        assert_eq!(load.due_at(1, 2), Duration::from_millis(1_125));
        let second = Duration::from_secs(1);
        assert_eq!((0..4).map(|worker| load.turns(worker, second)).sum::<u64>(), 8);
        for worker in 0..4 {
            let turns = load.turns(worker, second);
            assert!(load.due_at(worker, turns - 1) < second && load.due_at(worker, turns) >= second);
        }
    }

    #[test]
    fn loads_that_cannot_be_are_refused() {
        let usual = Load::default;
        for (load, part) in [
            (Load { workers: 0, ..usual() }, "workers"),
            (Load { rate: 0, ..usual() }, "rate"),
            (Load { items: 0, ..usual() }, "items"),
            (Load { deadline: Duration::ZERO, ..usual() }, "deadline"),
            (Load { read: 0, query: 0, upsert: 0, create: 0, ..usual() }, "happen"),
        ] {
            let error = load.check().expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(usual().check(), Ok(()));
    }
}
