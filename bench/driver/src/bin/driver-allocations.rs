//! Allocations per point read in memory: a number per driver.

use std::alloc::System;
use std::process::ExitCode;

use driver_bench::memory::{Driver, KINDS, runtime};
use driver_bench::subject::Kind;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Enough for buffers to have grown to their size.
const WARM_UP: u64 = 500;
const READS: u64 = 2_000;

fn main() -> ExitCode {
    for kind in KINDS {
        match count(kind) {
            Ok(count) => println!("{count:.2}"),
            Err(message) => {
                eprintln!("driver-allocations: {message}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn count(kind: Kind) -> Result<f64, String> {
    runtime()?.block_on(async {
        let driver = Driver::new(kind).await?;
        driver.read(WARM_UP).await?;
        let region = Region::new(ALLOCATOR);
        driver.read(READS).await?;
        let change = region.change();
        Ok((change.allocations + change.reallocations) as f64 / READS as f64)
    })
}
