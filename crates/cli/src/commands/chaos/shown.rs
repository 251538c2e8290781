//! Scenarios, schedules and reports, for people.

use std::time::Duration;

use chaos::report::{Phases, Report};
use chaos::sample::Sum;
use chaos::{Scenario, Schedule};

use super::title;
use crate::output::Table;

/// A row per scenario.
pub(super) fn list(scenarios: &[Scenario]) -> String {
    let mut table = Table::new(&["SCENARIO", "RUNS", "WHAT HAPPENS"]);
    for scenario in scenarios {
        table.row(vec![scenario.name.clone(), scenario.writes.len().to_string(), scenario.about.clone()]);
    }
    table.to_string()
}

/// What is to happen, and when.
pub(super) fn plan(schedule: &Schedule) -> String {
    let mut table = Table::new(&["FROM", "TO", "FAULT"]);
    for fault in &schedule.faults {
        table.row(vec![seconds(fault.begins), seconds(fault.ends), fault.to_string()]);
    }
    let load = &schedule.load;
    let operations: u64 = (0..load.workers).map(|worker| load.turns(worker, schedule.end)).sum();
    format!(
        "{}, seed {}, schedule {:016x}: {} with {operations} operations\n{table}\n",
        title(&schedule.name, schedule.writes),
        schedule.seed,
        schedule.digest(),
        seconds(schedule.end),
    )
}

/// What came of a run.
pub(super) fn report(report: &Report) -> String {
    let mut table = Table::new(&[
        "FAULT",
        "",
        "OPERATIONS",
        "FAILED",
        "RECOVERY",
        "P50 before/during/after",
        "P99 before/during/after",
        "HEDGES",
        "RETRIES",
    ]);
    for felt in &report.faults {
        for (name, what, phases) in
            [(felt.fault.as_str(), "reads", &felt.reads), ("", "writes", &felt.writes)]
        {
            table.row(row(name, what, phases));
        }
    }
    let mut lines = vec![format!(
        "{}, seed {}, schedule {}: {} operations in {}",
        title(&report.scenario, report.writes),
        report.seed,
        report.digest,
        report.all_reads.operations + report.all_writes.operations,
        seconds(report.lasted),
    )];
    lines.push(table.to_string());
    if report.undecided > 0 || report.skipped > 0 {
        lines.push(format!(
            "{} writes undecided, seen over later ones {} times; {} turns left out",
            report.undecided, report.resurfaced, report.skipped
        ));
    }
    for verdict in report.promises.iter().filter(|verdict| verdict.broken > 0) {
        lines.push(format!("BROKEN {} times: {}", verdict.broken, verdict.promise.words()));
        lines.extend(verdict.examples.iter().map(|example| format!("  {example}")));
    }
    let held = report.promises.iter().filter(|verdict| verdict.broken == 0);
    let held: Vec<&str> = held.map(|verdict| verdict.promise.short()).collect();
    lines.push(format!("held: {}", held.join(" · ")));
    lines.push(String::new());
    lines.join("\n")
}

fn row(name: &str, what: &str, phases: &Phases) -> Vec<String> {
    let Phases { before, during, after, recovery, .. } = phases;
    let three = |of: fn(&Sum) -> Option<Duration>| {
        [before, during, after].map(|sum| of(sum).map_or("-".to_owned(), milliseconds)).join(" / ")
    };
    vec![
        name.to_owned(),
        what.to_owned(),
        during.operations.to_string(),
        failures(during),
        recovery.map_or("none".to_owned(), |time| format!("{} ms", time.as_millis())),
        three(|sum| sum.p50),
        three(|sum| sum.p99),
        during.hedges.to_string(),
        during.retries.to_string(),
    ]
}

/// `0`, or `43 unavailable, 3 undecided`.
fn failures(sum: &Sum) -> String {
    let kinds: Vec<String> = sum.failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if kinds.is_empty() { "0".to_owned() } else { kinds.join(", ") }
}

/// `3.2`, `410`: as exactly as it matters.
fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1_000.0;
    if milliseconds < 10.0 { format!("{milliseconds:.1}") } else { format!("{milliseconds:.0}") }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
