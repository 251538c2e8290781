//! The run of one seed, and the search for the fewest steps that violate a guarantee.

use std::panic::AssertUnwindSafe;

use crate::failure::{Failure, Guarantee};
use crate::seeded_random::SeededRandom;

/// The most runs for shortening a failing history.
const SHRINK_RUNS_MAX: usize = 600;

/// A simulation that runs from a seed.
pub(crate) trait Simulation: Sized {
    async fn create(rng: &mut SeededRandom) -> Self;
    async fn step(&mut self, rng: &mut SeededRandom) -> Result<(), Failure>;
    /// Lets all writes replicate, and checks everything.
    async fn check_final_state(&mut self, rng: &mut SeededRandom) -> Result<(), Failure>;
    /// The log lines since the last call.
    fn log(&mut self) -> &mut Vec<String>;
}

/// A seed that violates a guarantee, and the steps that lead to it.
pub(crate) struct BrokenSeed {
    pub(crate) seed: u64,
    pub(crate) failure: Failure,
    pub(crate) steps: Vec<usize>,
    pub(crate) history: Vec<String>,
}

impl std::fmt::Display for BrokenSeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.failure)?;
        writeln!(f, "history of the {} steps that matter:", self.steps.len())?;
        self.history.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        write!(f, "replay it with PERI_SEED={}", self.seed)
    }
}

/// Runs a seed and, if it fails, finds the fewest steps that fail.
pub(crate) fn check<P: Simulation>(seed: u64, steps: usize) -> Result<(), BrokenSeed> {
    let all: Vec<usize> = (0..steps).collect();
    match run::<P>(seed, &all) {
        Ok(()) => Ok(()),
        Err((failure, history)) => Err(shrink::<P>(BrokenSeed { seed, failure, steps: all, history })),
    }
}

/// Runs some steps of a seed, and then the final check.
fn run<P: Simulation>(seed: u64, steps: &[usize]) -> Result<(), (Failure, Vec<String>)> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut reported = Vec::new();
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let mut play = P::create(&mut SeededRandom::new(seed)).await;
            let outcome = drive(&mut play, seed, steps, &mut reported).await;
            reported.append(play.log());
            outcome
        })
    }));
    let outcome = outcome.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(Failure { guarantee: Guarantee::NoPanic, details: text.unwrap_or_default() })
    });
    outcome.map_err(|failure| (failure, reported))
}

async fn drive<P: Simulation>(
    play: &mut P,
    seed: u64,
    steps: &[usize],
    reported: &mut Vec<String>,
) -> Result<(), Failure> {
    for step in steps {
        // Moved out before the step, so that a panic does not lose it.
        reported.append(play.log());
        reported.push(format!("step {step}"));
        play.step(&mut SeededRandom::of_step(seed, *step)).await?;
    }
    reported.append(play.log());
    reported.push("everything arrives, and everything is asked for".to_owned());
    let outcome = play.check_final_state(&mut SeededRandom::of_step(seed, usize::MAX - 1)).await;
    // Of the final check only the last lines help to understand a failure.
    let well = play.log().len().saturating_sub(2);
    play.log().drain(..well);
    outcome
}

/// Removes as many steps as possible, first many at once, then one by one.
fn shrink<P: Simulation>(mut broken: BrokenSeed) -> BrokenSeed {
    let mut chunk = broken.steps.len() / 2;
    let mut runs = 0;
    while chunk > 0 {
        let mut at = 0;
        while at < broken.steps.len() && runs < SHRINK_RUNS_MAX {
            let mut fewer = broken.steps.clone();
            fewer.drain(at..(at + chunk).min(fewer.len()));
            runs += 1;
            match run::<P>(broken.seed, &fewer) {
                Err((failure, history)) if failure.guarantee == broken.failure.guarantee => {
                    broken = BrokenSeed { steps: fewer, failure, history, ..broken };
                }
                _ => at += chunk,
            }
        }
        chunk /= 2;
    }
    broken
}
