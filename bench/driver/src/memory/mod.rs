//! The drivers alone: an HTTP client that answers from memory, so that nothing but the driver costs anything.
//!
//! Both are given the same answers, made once: an answer is a copy of a map of static headers and one body.

mod answers;
mod perihelion;
mod published;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::clock;
use crate::figures::median;
use crate::instructions::per_read;
use crate::options::Options;
use crate::subject::Kind;

/// The argument that makes the program one driver in memory, for so many reads.
pub const IN_MEMORY: &str = "--in-memory";

/// The drivers that can be taken apart from their HTTP clients.
pub const KINDS: [Kind; 2] = [Kind::Perihelion, Kind::Published];

/// One of them.
#[derive(Debug)]
pub enum Driver {
    /// The product's.
    Perihelion(crate::subject::Perihelion),
    /// The published one.
    Published(crate::subject::Published),
}

impl Driver {
    /// A driver that knows the account and the container.
    pub async fn new(kind: Kind) -> Result<Driver, String> {
        let driver = match kind {
            Kind::Perihelion => Driver::Perihelion(perihelion::driver()?),
            Kind::Published => Driver::Published(published::driver().await?),
            Kind::Bare => return Err("a loop without a driver has no driver's costs".into()),
        };
        driver.read(1).await?;
        Ok(driver)
    }

    /// Point reads, one after the other.
    pub async fn read(&self, count: u64) -> Result<(), String> {
        for number in 0..count {
            let length = match self {
                Driver::Perihelion(driver) => driver.read(number).await?,
                Driver::Published(driver) => driver.read(number).await?,
            };
            if length != answers::ITEM.len() {
                return Err(format!("an answer of {length} bytes is not the item"));
            }
        }
        Ok(())
    }
}

/// What a point read costs each of [`KINDS`].
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Nanoseconds.
    pub nanoseconds: [f64; 2],
    /// The first's time as a multiple of the second's.
    pub time_ratio: f64,
    /// Allocations.
    pub allocations: [f64; 2],
    /// Instructions, where there is a program that counts them.
    pub instructions: Option<[f64; 2]>,
}

/// Measures all of it.
pub fn measure(options: &Options) -> Result<Costs, String> {
    let (nanoseconds, time_ratio) = time(options)?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let allocations = allocations(&program.with_file_name("driver-allocations"))?;
    let reads = if options.quick { 500 } else { 2_000 };
    let instructions = KINDS.map(|kind| per_read(&program, &[IN_MEMORY, word(kind)], reads));
    let instructions = match instructions {
        [Some(first), Some(second)] => Some([first, second]),
        _ => None,
    };
    Ok(Costs { nanoseconds, time_ratio, allocations, instructions })
}

/// A runtime of one thread.
pub fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())
}

/// How the programs call a driver.
pub fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Perihelion => "perihelion",
        Kind::Published => "published",
        Kind::Bare => "bare",
    }
}

/// Is one driver in memory for so many reads: the arguments after [`IN_MEMORY`].
pub fn run(arguments: &[String]) -> Result<(), String> {
    let [name, count] = arguments else { return Err(format!("{IN_MEMORY} takes a driver and a number")) };
    let kind = KINDS.into_iter().find(|kind| word(*kind) == name).ok_or("there is no such driver")?;
    let count = count.parse().map_err(|_| format!("'{count}' is not a number"))?;
    runtime()?.block_on(async { Driver::new(kind).await?.read(count).await })
}

fn time(options: &Options) -> Result<([f64; 2], f64), String> {
    const READS: u64 = 2_000;
    let runtime = runtime()?;
    let [ours, theirs] = KINDS.map(|kind| runtime.block_on(Driver::new(kind)));
    let drivers = [ours?, theirs?];
    let mut rounds = Vec::new();
    for round in 0..options.rounds.max(5) {
        let mut took = [Duration::ZERO; 2];
        for turn in 0..2 {
            let at = (round + turn) % 2;
            let begun = clock::now();
            runtime.block_on(drivers[at].read(READS))?;
            took[at] = clock::now() - begun;
        }
        rounds.push(took.map(|took| took.as_secs_f64() * 1e9 / READS as f64));
    }
    let of = |at: usize| median(rounds.iter().map(|round| round[at]));
    Ok(([of(0), of(1)], median(rounds.iter().map(|round| round[0] / round[1]))))
}

/// Counted by a program of its own: counting costs those who allocate.
fn allocations(program: &Path) -> Result<[f64; 2], String> {
    let output = Command::new(program).output().map_err(|error| format!("{}: {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    <[f64; 2]>::try_from(numbers).map_err(|_| {
        format!("allocations were not counted: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}
