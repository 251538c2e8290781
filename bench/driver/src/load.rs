//! So many operations in flight, for so long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock;
use crate::figures::percentile;
use crate::item::{self, Items};
use crate::subject::Worker;

/// The items that reads work on.
pub const ITEMS: u64 = 2_000;

/// What is done over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Reads one of [`ITEMS`] items.
    Read,
    /// Makes an item that does not exist yet; the answer carries it.
    Create,
}

impl Work {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Work::Read => "point read",
            Work::Create => "create",
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Operations per second.
    pub per_second: f64,
    /// Processor time per operation in microseconds: the client's alone, the server is another process.
    pub processor_us: f64,
    /// Half of the operations took less, in microseconds.
    pub p50_us: f64,
    /// All but a hundredth took less, in microseconds.
    pub p99_us: f64,
}

/// What all workers of all subjects share: items that nobody made yet have numbers that nobody used yet.
#[derive(Clone, Debug)]
pub struct Supply {
    next: Arc<AtomicU64>,
    items: Arc<Items>,
}

impl Supply {
    /// Numbers above those of the items that are there from the beginning.
    pub fn new() -> Supply {
        Supply { next: Arc::new(AtomicU64::new(1_000_000)), items: Arc::default() }
    }
}

impl Default for Supply {
    fn default() -> Supply {
        Supply::new()
    }
}

/// Keeps one operation of each worker going for `time`: each is followed by the next.
pub async fn run(
    workers: &mut Vec<Worker>,
    work: Work,
    supply: &Supply,
    time: Duration,
) -> Result<Rate, String> {
    let (processor, start) = (clock::processor_time(), clock::now());
    let until = start + time;
    let tasks: Vec<_> = workers
        .drain(..)
        .map(|worker| {
            let supply = supply.clone();
            tokio::spawn(async move { repeat(worker, work, &supply, until).await })
        })
        .collect();
    let mut took = Vec::new();
    for task in tasks {
        let (worker, times) = task.await.map_err(|error| error.to_string())??;
        workers.push(worker);
        took.extend(times);
    }
    let elapsed = (clock::now() - start).as_secs_f64();
    let processor = (clock::processor_time() - processor).as_secs_f64();
    took.sort_unstable();
    let count = took.len() as f64;
    Ok(Rate {
        per_second: count / elapsed,
        processor_us: processor / count * 1e6,
        p50_us: percentile(&took, 0.5),
        p99_us: percentile(&took, 0.99),
    })
}

async fn repeat(
    mut worker: Worker,
    work: Work,
    supply: &Supply,
    until: std::time::Instant,
) -> Result<(Worker, Vec<u32>), String> {
    let mut took = Vec::with_capacity(1024);
    let mut begun = clock::now();
    while begun < until {
        let number = supply.next.fetch_add(1, Ordering::Relaxed);
        match work {
            Work::Read => worker.read(item::scatter(number) % ITEMS).await?,
            Work::Create => worker.create(number, supply.items.body(number)).await?,
        }
        let ended = clock::now();
        took.push((ended - begun).as_micros() as u32);
        begun = ended;
    }
    Ok((worker, took))
}
