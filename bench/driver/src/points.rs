//! Point reads and creates: every cell on every subject, interleaved, round by round.

use std::time::Duration;

use tokio::runtime::Runtime;

use crate::figures::median;
use crate::load::{self, Rate, Supply};
use crate::options::Options;
use crate::peri::Peri;
use crate::subject::{Kind, Shape, Worker};

/// The container that reads work on.
pub const READS: &str = "reads";

/// One cell: each subject, round by round, in the order of [`Kind::ALL`].
#[derive(Clone, Debug)]
pub struct Cell {
    /// What was measured.
    pub shape: Shape,
    /// The rounds.
    pub rounds: Vec<[Rate; 3]>,
}

impl Cell {
    /// A value of the first subject as a multiple of another's: the median of the rounds, so that a machine
    /// that slows down slows both sides.
    pub fn ratio(&self, other: usize, value: impl Fn(Rate) -> f64) -> f64 {
        median(self.rounds.iter().map(|round| value(round[0]) / value(round[other])))
    }

    /// A value of a subject: the median of the rounds.
    pub fn median(&self, subject: usize, value: impl Fn(Rate) -> f64) -> f64 {
        median(self.rounds.iter().map(|round| value(round[subject])))
    }
}

/// One subject, warm, on threads of its own: whatever it leaves behind ends with it.
struct Subject {
    workers: Vec<Worker>,
    runtime: Runtime,
}

impl Subject {
    fn new(kind: Kind, shape: Shape, peri: &Peri, container: &str) -> Result<Subject, String> {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        let workers = runtime.block_on(Worker::all(kind, shape, peri, container));
        let workers = workers.map_err(|error| format!("{}: {error}", kind.name()))?;
        Ok(Subject { workers, runtime })
    }

    fn run(&mut self, shape: Shape, supply: &Supply, time: Duration) -> Result<Rate, String> {
        self.runtime.block_on(load::run(&mut self.workers, shape.work, supply, time))
    }
}

/// Measures one cell in a container.
pub fn measure(options: &Options, shape: Shape, peri: &Peri, container: &str) -> Result<Cell, String> {
    measure_after(options, shape, peri, container, || Ok(()))
}

/// The same, when something was done to the server after everybody has met it.
pub fn measure_after(
    options: &Options,
    shape: Shape,
    peri: &Peri,
    container: &str,
    then: impl FnOnce() -> Result<(), String>,
) -> Result<Cell, String> {
    let supply = Supply::new();
    let mut subjects = Vec::new();
    for kind in Kind::ALL {
        let mut subject = Subject::new(kind, shape, peri, container)?;
        // Connections are made, and caches filled, before anything counts.
        subject.run(shape, &supply, options.slot).map_err(|error| format!("{}: {error}", kind.name()))?;
        subjects.push(subject);
    }
    then()?;
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let mut rates = [None; 3];
        // Everybody is first, second and last equally often.
        for turn in 0..subjects.len() {
            let at = (round + turn) % subjects.len();
            let rate = subjects[at].run(shape, &supply, options.slot);
            rates[at] = Some(rate.map_err(|error| format!("{}: {error}", Kind::ALL[at].name()))?);
        }
        let [Some(first), Some(second), Some(third)] = rates else {
            return Err("a turn was left out".into());
        };
        rounds.push([first, second, third]);
    }
    Ok(Cell { shape, rounds })
}

/// One subject alone, for a profiler to look at.
pub fn profile(
    options: &Options,
    kind: Kind,
    shape: Shape,
    peri: &Peri,
    container: &str,
) -> Result<Rate, String> {
    let mut subject = Subject::new(kind, shape, peri, container)?;
    let time = options.slot * u32::try_from(options.rounds).unwrap_or(1);
    subject.run(shape, &Supply::new(), time)
}
