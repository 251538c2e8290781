//! The workload of a scenario: which operation each worker runs when. Pure: the same seed gives the same operations.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::duration::human_readable;
use crate::invalid_scenario::InvalidScenario;
use crate::seed::{derive_seed, rng_for};

/// A steady load of operations by several workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Workload {
    /// The number of workers; each runs one operation at a time.
    pub workers: usize,
    /// How many of the workers only read, so that slow writes do not keep them from it.
    pub readers: usize,
    /// The operations per second of all workers together.
    pub rate: u32,
    /// The number of items that each worker owns: it writes them, and all workers read them.
    pub items: usize,
    /// The weight of point reads among the operations.
    pub read: u32,
    /// The weight of cross-partition queries for all items of a worker.
    pub query: u32,
    /// The weight of upserts of an own item.
    pub upsert: u32,
    /// The weight of creates of a new item.
    pub create: u32,
    /// The weight of reads and queries by a new client, which has to look up the account and the container first.
    pub cold: u32,
    /// The weight of calls with a session token or an ETag that no header may hold.
    pub invalid: u32,
    /// The weight of reads and upserts whose timeouts and waits are as long as a duration can be.
    pub unlimited: u32,
    /// How many bytes are added to each item.
    pub padding: usize,
    /// The deadline of every operation.
    #[serde(with = "human_readable")]
    pub deadline: Duration,
    /// How much later than its deadline an operation may end on a busy machine.
    #[serde(with = "human_readable")]
    pub tolerance: Duration,
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            workers: 16,
            readers: 0,
            rate: 250,
            items: 4,
            read: 60,
            query: 5,
            upsert: 25,
            create: 10,
            cold: 0,
            invalid: 0,
            unlimited: 0,
            padding: 0,
            deadline: Duration::from_secs(5),
            tolerance: Duration::from_millis(500),
        }
    }
}

/// One operation of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkloadOperation {
    /// Reads an item of some worker.
    Read {
        /// The worker that owns the item.
        owner: usize,
        /// The number of the item among those of its owner.
        item: usize,
    },
    /// Queries all items of some worker.
    Query {
        /// The worker that owns the items.
        owner: usize,
    },
    /// Upserts an item of the worker itself.
    Upsert {
        /// The number of the item among those of the worker.
        item: usize,
    },
    /// Creates an item whose id contains the sequence number of the operation.
    Create,
    /// Reads an item of some worker, or queries all of them, with a new client.
    Cold {
        /// The worker that owns the items.
        owner: usize,
        /// The number of the item that is read; none for a query.
        item: Option<usize>,
    },
    /// Reads an item of some worker, or upserts one of the worker itself, with an argument that no header may hold.
    Invalid {
        /// The worker that owns the item that is read.
        owner: usize,
        /// The number of the item among those of its owner, or of the worker.
        item: usize,
        /// The argument that is invalid.
        argument: InvalidArgument,
    },
    /// Reads an item of some worker without a deadline.
    ReadUnlimited {
        /// The worker that owns the item.
        owner: usize,
        /// The number of the item among those of its owner.
        item: usize,
    },
    /// Upserts an item of the worker itself without a deadline.
    UpsertUnlimited {
        /// The number of the item among those of the worker.
        item: usize,
    },
}

/// An argument of a call that has a character no header may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidArgument {
    /// The session token of a read.
    SessionToken,
    /// The ETag of a read that asks for a newer version.
    IfNoneMatch,
    /// The ETag of a conditional write.
    IfMatch,
}

/// The invalid arguments, those of reads first.
const INVALID: [InvalidArgument; 3] =
    [InvalidArgument::SessionToken, InvalidArgument::IfNoneMatch, InvalidArgument::IfMatch];

const WORKERS_MAX: usize = 1_024;
const RATE_MAX: u32 = 100_000;
const ITEMS_MAX: usize = 1_000;
const PADDING_MAX: usize = 1024 * 1024;

impl Workload {
    /// Returns an error that names the first property that is invalid.
    pub(crate) fn check(&self) -> Result<(), InvalidScenario> {
        let bad = |text: String| Err(InvalidScenario::new(text));
        if !(1..=WORKERS_MAX).contains(&self.workers) {
            return bad(format!("load.workers is {}; expected 1 to {WORKERS_MAX}", self.workers));
        }
        if self.readers > self.workers {
            return bad(format!("load.readers is {}; expected at most load.workers", self.readers));
        }
        if self.padding > PADDING_MAX {
            return bad(format!("load.padding is {}; expected at most {PADDING_MAX} bytes", self.padding));
        }
        if self.readers > 0 && self.read_weight() == 0 {
            return bad("load.readers only read; set load.read, query, cold or unlimited".to_owned());
        }
        if !(1..=RATE_MAX).contains(&self.rate) {
            return bad(format!("load.rate is {}; expected 1 to {RATE_MAX} each second", self.rate));
        }
        if !(1..=ITEMS_MAX).contains(&self.items) {
            return bad(format!("load.items is {}; expected 1 to {ITEMS_MAX}", self.items));
        }
        if self.deadline.is_zero() {
            return bad("load.deadline is zero; set a longer one".to_owned());
        }
        match self.weights(self.readers).iter().map(|(_, weight)| u64::from(*weight)).sum::<u64>() {
            0 if self.readers < self.workers => {
                bad("load.read, query, upsert, create, cold, invalid and unlimited are all 0; set at least one of them"
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    fn read_weight(&self) -> u64 {
        [self.read, self.query, self.cold, self.unlimited].into_iter().map(u64::from).sum()
    }

    /// The weights of the operations of a worker. The first workers are those that only read.
    fn weights(&self, worker: usize) -> [(&'static str, u32); 7] {
        let (upsert, create) = if worker < self.readers { (0, 0) } else { (self.upsert, self.create) };
        [
            ("read", self.read),
            ("query", self.query),
            ("upsert", upsert),
            ("create", create),
            ("cold", self.cold),
            ("invalid", self.invalid),
            ("unlimited", self.unlimited),
        ]
    }

    /// The operation of a worker with this sequence number.
    pub fn operation(&self, seed: u64, worker: usize, sequence: u64) -> WorkloadOperation {
        let seed = derive_seed(derive_seed(seed, "worker", worker as u64), "operation", sequence);
        let weights = self.weights(worker);
        let total = weights.iter().map(|(_, weight)| u64::from(*weight)).sum::<u64>();
        let mut left = rng_for(seed, "kind").u64(0..total.max(1));
        let owner = rng_for(seed, "owner").usize(0..self.workers);
        let item = rng_for(seed, "item").usize(0..self.items);
        for (name, weight) in weights {
            if left < u64::from(weight) {
                return match name {
                    "read" => WorkloadOperation::Read { owner, item },
                    "query" => WorkloadOperation::Query { owner },
                    "upsert" => WorkloadOperation::Upsert { item },
                    "cold" => {
                        WorkloadOperation::Cold { owner, item: rng_for(seed, "cold").bool().then_some(item) }
                    }
                    "invalid" => {
                        // Those that only read send no write, be it invalid.
                        let arguments = if worker < self.readers { &INVALID[..2] } else { &INVALID[..] };
                        let argument = arguments[rng_for(seed, "invalid").usize(0..arguments.len())];
                        WorkloadOperation::Invalid { owner, item, argument }
                    }
                    "unlimited" if worker >= self.readers && rng_for(seed, "unlimited").bool() => {
                        WorkloadOperation::UpsertUnlimited { item }
                    }
                    "unlimited" => WorkloadOperation::ReadUnlimited { owner, item },
                    _ => WorkloadOperation::Create,
                };
            }
            left -= u64::from(weight);
        }
        WorkloadOperation::Create
    }

    /// When an operation is scheduled, counted from the start of the run. Operations are evenly spread over time.
    pub fn scheduled_at(&self, worker: usize, sequence: u64) -> Duration {
        let number = sequence as f64 * self.workers as f64 + worker as f64;
        Duration::from_secs_f64(number / f64::from(self.rate))
    }

    /// How many operations of a worker are scheduled in this time.
    pub fn operation_count(&self, worker: usize, duration: Duration) -> u64 {
        let numbers = duration.as_secs_f64() * f64::from(self.rate) - worker as f64;
        (numbers / self.workers as f64).ceil().max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_operations_with_the_given_weights() {
        let workload = Workload::default();
        let all = |seed| -> Vec<WorkloadOperation> {
            (0..2_000).map(|sequence| workload.operation(seed, 3, sequence)).collect()
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        let reads =
            all(1).iter().filter(|operation| matches!(operation, WorkloadOperation::Read { .. })).count();
        let creates =
            all(1).iter().filter(|operation| matches!(operation, WorkloadOperation::Create)).count();
        assert!((1_100..1_300).contains(&reads), "{reads}");
        assert!((150..250).contains(&creates), "{creates}");
        let owners: std::collections::HashSet<_> = all(1)
            .iter()
            .filter_map(|operation| match operation {
                WorkloadOperation::Read { owner, item } => Some((*owner, *item)),
                _ => None,
            })
            .collect();
        assert_eq!(owners.len(), workload.workers * workload.items, "the items of all workers are read");
    }

    #[test]
    fn readers_only_read() {
        let workload = Workload { readers: 2, cold: 10, invalid: 20, unlimited: 20, ..Workload::default() };
        let is_write = |operation: WorkloadOperation| {
            matches!(
                operation,
                WorkloadOperation::Upsert { .. }
                    | WorkloadOperation::Create
                    | WorkloadOperation::UpsertUnlimited { .. }
                    | WorkloadOperation::Invalid { argument: InvalidArgument::IfMatch, .. }
            )
        };
        let writes = |worker| (0..500).filter(|at| is_write(workload.operation(1, worker, *at))).count();
        assert_eq!((writes(0), writes(1)), (0, 0));
        assert!(writes(2) > 100, "{}", writes(2));
        let cold = |is_query: bool| {
            (0..500).any(|at| {
                let operation = workload.operation(1, 0, at);
                matches!(operation, WorkloadOperation::Cold { item, .. } if item.is_none() == is_query)
            })
        };
        assert!(cold(true) && cold(false));
        let arguments = |worker| -> std::collections::HashSet<InvalidArgument> {
            let argument = |operation| match operation {
                WorkloadOperation::Invalid { argument, .. } => Some(argument),
                _ => None,
            };
            (0..500).filter_map(|at| argument(workload.operation(1, worker, at))).collect()
        };
        assert_eq!((arguments(0).len(), arguments(2).len()), (2, 3));
    }

    #[test]
    fn operations_are_spread_evenly_over_workers_and_time() {
        let workload = Workload { workers: 4, rate: 8, ..Workload::default() };
        assert_eq!(workload.scheduled_at(0, 0), Duration::ZERO);
        assert_eq!(workload.scheduled_at(3, 0), Duration::from_millis(375));
        assert_eq!(workload.scheduled_at(1, 2), Duration::from_millis(1_125));
        let second = Duration::from_secs(1);
        assert_eq!((0..4).map(|worker| workload.operation_count(worker, second)).sum::<u64>(), 8);
        for worker in 0..4 {
            let count = workload.operation_count(worker, second);
            assert!(
                workload.scheduled_at(worker, count - 1) < second
                    && workload.scheduled_at(worker, count) >= second
            );
        }
    }

    #[test]
    fn invalid_workloads_are_errors() {
        let default = Workload::default;
        for (workload, part) in [
            (Workload { workers: 0, ..default() }, "workers"),
            (Workload { rate: 0, ..default() }, "rate"),
            (Workload { items: 0, ..default() }, "items"),
            (Workload { readers: 17, ..default() }, "readers"),
            (Workload { readers: 1, read: 0, query: 0, ..default() }, "readers"),
            (Workload { padding: usize::MAX, ..default() }, "padding"),
            (Workload { deadline: Duration::ZERO, ..default() }, "deadline"),
            (Workload { read: 0, query: 0, upsert: 0, create: 0, ..default() }, "at least one"),
        ] {
            let error = workload.check().expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(default().check(), Ok(()));
    }
}
