//! Operations per second: every row, at every number of connections, on every server, round by round.
//!
//! All servers run for the whole part and are asked in turn, so that what changes on the machine during
//! the run changes for all. The order rotates from round to round. A first, short round is not counted:
//! it lets compilers, allocators and caches settle.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::generator::{self, Outcome, Stop};
use crate::options::{Budget, Options};
use crate::process::{Machine, Process};
use crate::server::{Kind, Programs, RecordedAnswer};
use crate::subject::Subject;
use crate::workload::{self, Row};

/// One cell of the table: a row, a number of connections, a server.
pub(crate) type Cell = (Row, usize, Kind);

/// Outcomes per cell, in the order of the rounds.
pub(crate) type Cells = BTreeMap<Cell, Vec<Outcome>>;

/// What the part found, and what went wrong on the way.
#[derive(Default)]
pub(crate) struct Throughput {
    pub(crate) cells: Cells,
    /// The share of the machine that neither the servers nor the generator used: other work, in the way.
    pub(crate) others: f64,
    pub(crate) failures: Vec<String>,
}

/// Time for a server to let go of the container that was just deleted: not part of creating items.
const CLEAN_UP: Duration = Duration::from_millis(150);

/// Runs the part.
pub(crate) fn measure(
    programs: &Programs,
    options: &Options,
    recorded: &RecordedAnswer,
    progress: &mut dyn FnMut(&str),
) -> Result<Throughput, String> {
    let mut found = Throughput::default();
    let mut subjects = Vec::new();
    for kind in &options.servers {
        progress(&format!("preparing {}", kind.name()));
        let subject = Subject::prepare(programs, *kind)?;
        if *kind == Kind::Perihelion {
            recorded.write(&subject.record_point_read()?)?;
        }
        subjects.push(subject);
    }
    let plan = plan(options, &subjects, &mut found.failures);

    let budget = options.budget();
    let warm = Budget { warm_up: Duration::ZERO, window: budget.warm_up, ..budget };
    let (machine, start, own) = (Machine::sample()?, clock::now(), own_time(&subjects)?);
    let mut first_id = 0;
    for round in 0..=options.rounds {
        let spent = clock::now() - start;
        // The rounds so far took this long on average, so this one would end too late.
        if round > 1 && spent + spent / round as u32 > budget.throughput_max {
            progress(&format!("stopping after {} rounds: the machine is slow today", round - 1));
            break;
        }
        progress(&format!("round {round} of {}", options.rounds));
        let budget = if round == 0 { warm } else { budget };
        for (row, connections, servers) in &plan {
            for turn in 0..servers.len() {
                let index = servers[(turn + round) % servers.len()];
                // Far enough apart that no two measurements use one id.
                first_id += 100_000_000;
                let outcome = cell(&mut subjects[index], *row, *connections, budget, first_id);
                let kind = subjects[index].server.kind;
                match outcome {
                    Ok(outcome) => {
                        note_errors((*row, *connections, kind), &outcome, &mut found.failures);
                        if round > 0 {
                            found.cells.entry((*row, *connections, kind)).or_default().push(outcome);
                        }
                    }
                    Err(error) => found.failures.push(describe((*row, *connections, kind), &error)),
                }
            }
        }
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let own = (own_time(&subjects)? - own).as_secs_f64() / (clock::now() - start).as_secs_f64() / processors;
    found.others = (Machine::sample()?.busy_since(machine) - own).max(0.0);
    Ok(found)
}

/// Processor time of the generator and all servers together.
fn own_time(subjects: &[Subject]) -> Result<Duration, String> {
    let servers = subjects.iter().map(|subject| subject.server.process());
    servers.chain([Process::own()]).map(Process::processor_time).sum()
}

/// Which servers take part in which row: those that answer it correctly.
fn plan(
    options: &Options,
    subjects: &[Subject],
    failures: &mut Vec<String>,
) -> Vec<(Row, usize, Vec<usize>)> {
    let mut plan = Vec::new();
    for row in &options.rows {
        let mut servers = Vec::new();
        for (index, subject) in subjects.iter().enumerate() {
            let kind = subject.server.kind;
            if !kind.stores() {
                if *row == Row::PointRead {
                    servers.push(index);
                }
                continue;
            }
            match subject.check(*row) {
                Ok(()) => servers.push(index),
                Err(error) => failures.push(format!("{}, {}: {error}", kind.name(), row.name())),
            }
        }
        if !servers.is_empty() {
            plan.extend(options.connections.iter().map(|connections| (*row, *connections, servers.clone())));
        }
    }
    plan
}

fn cell(
    subject: &mut Subject,
    row: Row,
    connections: usize,
    budget: Budget,
    first_id: u64,
) -> Result<Outcome, String> {
    if row == Row::Create {
        subject.empty_creates()?;
        thread::sleep(CLEAN_UP);
    }
    let server = &subject.server;
    let date = clock::date();
    let ordering = server.kind.ordering();
    let mut script =
        workload::script(row, server.account(), &date, subject.container(row), ordering, first_id);
    let stop = Stop::After { warm_up: budget.warm_up, window: budget.window };
    generator::run(server.target(), connections, stop, script.as_mut())
}

fn note_errors(cell: Cell, outcome: &Outcome, failures: &mut Vec<String>) {
    if let Some(error) = &outcome.first_error {
        failures.push(describe(
            cell,
            &format!("{} of {} answers wrong, first {error}", outcome.errors, outcome.answers),
        ));
    }
}

fn describe((row, connections, kind): Cell, error: &str) -> String {
    format!("{}, {} at {connections}: {error}", kind.name(), row.name())
}
