//! A seeded workload against a model: clients that read, write, query and follow the change feed while
//! replication lags, regions stop and fail over, partitions split and merge, snapshots come back, requests
//! fail, and the account ends and is opened again.
//! `single_write` simulates an account with one write region, `multi_write` one with several.
//!
//! Everything happens in one thread per seed, with a clock that only the seed moves: a seed that fails
//! once fails always. More seeds, longer ones, or one of them:
//!
//! ```text
//! PERI_SEEDS=10000 PERI_SEED_START=200 cargo test -p perihelion-emulator --release --test simulation
//! PERI_STEPS=800 PERI_SEEDS=500 cargo test -p perihelion-emulator --release --test simulation
//! PERI_SEED=4711 cargo test -p perihelion-emulator --test simulation one_region
//! ```
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod actions;
#[allow(dead_code, reason = "shared with the tests of single behaviours, which need more of it")]
#[path = "../it/client.rs"]
mod client;
mod failure;
mod fault_rules;
mod feed;
mod fixture;
mod lineage;
mod model;
mod multi_write;
mod multi_write_feed;
mod operation;
mod operator;
mod partition_ranges;
mod query;
mod reads;
mod requests;
mod restart;
mod run;
mod seeded_random;
mod session;
mod single_write;
mod write_request;
mod writes;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds of an ordinary run.
const SEEDS: u64 = 200;
/// Seeds of an ordinary run with multiple write regions.
const SEEDS_ALL_WRITE: u64 = 50;
/// The number of steps of one seed.
const STEPS: usize = 120;

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number, not '{text}'")))
}

#[test]
fn every_seed_keeps_every_guarantee_where_one_region_writes() {
    run_seeds::<single_write::SingleWriteSimulation>(SEEDS, STEPS);
}

#[test]
fn every_seed_keeps_every_guarantee_where_all_regions_write() {
    run_seeds::<multi_write::MultiWriteSimulation>(SEEDS_ALL_WRITE, STEPS);
}

/// Runs seeds, as many at once as there are processors.
fn run_seeds<P: run::Simulation>(seeds: u64, steps: usize) {
    let (start, count) = match variable("PERI_SEED") {
        Some(seed) => (seed, 1),
        None => (variable("PERI_SEED_START").unwrap_or(0), variable("PERI_SEEDS").unwrap_or(seeds)),
    };
    let steps = variable("PERI_STEPS").map_or(steps, |steps| steps as usize);
    let next = AtomicU64::new(start);
    let broken = Mutex::new(None);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= start + count || broken.lock().unwrap().is_some() {
                return;
            }
            if let Err(found) = run::check::<P>(seed, steps) {
                broken.lock().unwrap().get_or_insert(found);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    if let Some(broken) = broken.into_inner().unwrap() {
        panic!("{broken}");
    }
}
