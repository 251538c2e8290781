//! Scenarios, schedules and reports as text.

use std::time::Duration;

use chaos::report::{FaultImpact, Phases, Report};
use chaos::sample::OperationSummary;
use chaos::{Scenario, Schedule};

use super::title;
use crate::output::{Table, printable};

/// A table with a row for each scenario.
pub(super) fn list(scenarios: &[Scenario]) -> String {
    let mut table = Table::new(&["SCENARIO", "RUNS", "WHAT HAPPENS"]);
    for scenario in scenarios {
        table.row(vec![scenario.name.clone(), scenario.variants().len().to_string(), scenario.about.clone()]);
    }
    table.to_string()
}

/// A schedule as text: its faults with their times.
pub(super) fn schedule(schedule: &Schedule) -> String {
    let mut table = Table::new(&["FROM", "TO", "FAULT"]);
    for fault in &schedule.faults {
        table.row(vec![seconds(fault.begins), seconds(fault.ends), fault.to_string()]);
    }
    let workload = &schedule.workload;
    let count = |worker| workload.operation_count(worker, schedule.end);
    let operations: u64 = (0..workload.workers).map(count).sum();
    format!(
        "{}, seed {}, schedule {:016x}: {} with {operations} operations\n{table}\n",
        title(&schedule.name, &schedule.variant.to_string()),
        schedule.seed,
        schedule.digest(),
        seconds(schedule.end),
    )
}

/// A report as text.
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
    for impact in &report.faults {
        for (name, what, phases) in
            [(impact.fault.as_str(), "reads", &impact.reads), ("", "writes", &impact.writes)]
        {
            table.row(row(name, what, phases));
        }
    }
    let mut lines = vec![format!(
        "{}, seed {}, schedule {}: {} operations in {}",
        title(&report.scenario, &report.variant),
        report.seed,
        report.digest,
        report.all_reads.operations + report.all_writes.operations,
        seconds(report.lasted),
    )];
    lines.push(table.to_string());
    lines.extend(report.faults.iter().filter_map(regions));
    if report.undecided > 0 || report.skipped > 0 {
        lines.push(format!(
            "{} writes undecided, visible after later ones {} times; {} operations skipped",
            report.undecided, report.late_writes, report.skipped
        ));
    }
    if report.invalid_calls > 0 {
        lines.push(format!("{} invalid calls between them", report.invalid_calls));
    }
    for result in report.guarantees.iter().filter(|result| result.violations > 0) {
        lines.push(format!("VIOLATED {} times: {}", result.violations, result.guarantee.description()));
        lines.extend(result.examples.iter().map(|example| format!("  {}", printable(example))));
    }
    let held = report.guarantees.iter().filter(|result| result.violations == 0);
    let held: Vec<&str> = held.map(|result| result.guarantee.label()).collect();
    lines.push(format!("held: {}", held.join(" · ")));
    lines.push(String::new());
    lines.join("\n")
}

fn row(name: &str, what: &str, phases: &Phases) -> Vec<String> {
    let Phases { before, during, after, recovery, .. } = phases;
    let three = |of: fn(&OperationSummary) -> Option<Duration>| {
        [before, during, after].map(|summary| of(summary).map_or("-".to_owned(), milliseconds)).join(" / ")
    };
    vec![
        name.to_owned(),
        what.to_owned(),
        during.operations.to_string(),
        failures(during),
        recovery.map_or("none".to_owned(), |time| format!("{} ms", time.as_millis())),
        three(|summary| summary.p50),
        three(|summary| summary.p99),
        during.hedges.to_string(),
        during.retries.to_string(),
    ]
}

/// When operations left the region of a fault and returned, if the scenario expects that they do:
/// `black hole West US: reads left after 1.9 s, P50 3.1 before and 3.3 then; found again after 4.2 s`.
fn regions(impact: &FaultImpact) -> Option<String> {
    let left = |what: &str, phases: &Phases| {
        let settled = phases.settled.as_ref()?;
        let left =
            phases.left.map_or("never went there".to_owned(), |left| format!("left after {}", seconds(left)));
        let median = |summary: &OperationSummary| summary.p50.map_or("-".to_owned(), milliseconds);
        Some(format!("{what} {left}, P50 {} before and {} then", median(&phases.before), median(settled)))
    };
    let mut parts: Vec<String> =
        [left("reads", &impact.reads), left("writes", &impact.writes)].into_iter().flatten().collect();
    if parts.is_empty() {
        return None;
    }
    parts.push(match impact.reads.found {
        Some(found) => format!("found again {} after its end", seconds(found)),
        None => "not found again".to_owned(),
    });
    Some(format!("{}: {}", printable(&impact.fault), parts.join("; ")))
}

/// The failed operations as text: `0`, or `43 unavailable, 3 undecided`.
fn failures(summary: &OperationSummary) -> String {
    let kinds: Vec<String> = summary.failures.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if kinds.is_empty() { "0".to_owned() } else { kinds.join(", ") }
}

/// Milliseconds with a digit after the point below ten: `3.2`, `410`.
fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1_000.0;
    if milliseconds < 10.0 { format!("{milliseconds:.1}") } else { format!("{milliseconds:.0}") }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
