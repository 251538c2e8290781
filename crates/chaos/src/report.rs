//! The report of a run: the impact of each fault on operations, and whether the guarantees held. Pure.

use std::time::Duration;

use serde::Serialize;

use crate::guarantee::{Guarantee, Violation};
use crate::inject::ActiveInterval;
use crate::sample::{OperationClass, OperationSample, OperationSummary, recovery};
use crate::scenario::WriteRegions;
use crate::schedule::{Schedule, ScheduledFault};
use crate::workers::WorkerRecord;

/// Everything that was recorded during a run.
#[derive(Debug)]
pub(crate) struct RunData {
    pub(crate) records: Vec<WorkerRecord>,
    pub(crate) active_intervals: Vec<ActiveInterval>,
    /// The violations that were found when all items were read at the end.
    pub(crate) violations: Vec<Violation>,
    pub(crate) undecided: usize,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// The name of the scenario.
    pub scenario: String,
    /// Which regions of the account accept writes.
    pub writes: WriteRegions,
    /// The seed of all random choices.
    pub seed: u64,
    /// The hash of the schedule, in hexadecimal: equal for equal schedules.
    pub digest: String,
    /// How long the workload lasted.
    #[serde(rename = "lastedMs", serialize_with = "whole_milliseconds")]
    pub lasted: Duration,
    /// The summary of all reads.
    pub all_reads: OperationSummary,
    /// The summary of all writes.
    pub all_writes: OperationSummary,
    /// The number of operations that were skipped because their worker was busy.
    pub skipped: u64,
    /// The number of writes whose response was lost.
    pub undecided: usize,
    /// How often a write whose response was lost was visible after a later write.
    #[serde(rename = "resurfaced")]
    pub late_writes: u64,
    /// The impact of each fault.
    pub faults: Vec<FaultImpact>,
    /// Whether each guarantee held.
    #[serde(rename = "promises")]
    pub guarantees: Vec<GuaranteeResult>,
}

/// The impact of one fault on operations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FaultImpact {
    /// The kind and the regions of the fault.
    pub fault: String,
    /// When the fault began, counted from the start.
    #[serde(rename = "beganMs", serialize_with = "whole_milliseconds")]
    pub began: Duration,
    /// When the fault ended, counted from the start.
    #[serde(rename = "endedMs", serialize_with = "whole_milliseconds")]
    pub ended: Duration,
    /// The reads before, during and after the fault.
    pub reads: Phases,
    /// The writes before, during and after the fault.
    pub writes: Phases,
}

/// The operations of one class before, during and after a fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Phases {
    /// The operations between the fault before and the beginning of this one.
    pub before: OperationSummary,
    /// The operations that overlap the fault.
    pub during: OperationSummary,
    /// The operations that began between the end of the fault and the next fault.
    pub after: OperationSummary,
    /// How long after the beginning of the fault operations recovered; none if they did not.
    #[serde(rename = "recoveryMs", serialize_with = "crate::sample::milliseconds")]
    pub recovery: Option<Duration>,
}

/// Whether one guarantee held.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct GuaranteeResult {
    /// The guarantee that was checked.
    #[serde(rename = "promise")]
    pub guarantee: Guarantee,
    /// The number of violations.
    #[serde(rename = "broken")]
    pub violations: usize,
    /// Descriptions of the first violations.
    pub examples: Vec<String>,
}

/// How many violations of one guarantee a report describes.
const EXAMPLES_MAX: usize = 5;
/// A latency that counts as healthy, even if operations were faster before the fault.
const HEALTHY_LATENCY: Duration = Duration::from_millis(100);
/// How many times the 99th percentile before the fault counts as healthy.
const HEALTHY_FACTOR: u32 = 3;

impl Report {
    pub(crate) fn new(schedule: &Schedule, data: RunData) -> Report {
        let RunData { records, active_intervals, mut violations, undecided } = data;
        let (mut samples, mut skipped, mut late_writes) = (Vec::new(), 0, 0);
        for record in records {
            samples.extend(record.samples);
            violations.extend(record.violations);
            skipped += record.skipped;
            late_writes += record.late_writes;
        }
        samples.sort_by_key(|sample| sample.began);
        let of = |class: OperationClass| -> Vec<OperationSample> {
            samples.iter().filter(|sample| sample.class == class).copied().collect()
        };
        let (reads, writes) = (of(OperationClass::Read), of(OperationClass::Write));
        let faults: Vec<FaultImpact> = (0..active_intervals.len())
            .map(|number| {
                let window = FaultWindow::of(&active_intervals, number, schedule.end);
                FaultImpact {
                    fault: schedule.faults[number].to_string(),
                    began: window.began,
                    ended: window.ended,
                    reads: window.phases(&reads),
                    writes: window.phases(&writes),
                }
            })
            .collect();
        let recoveries = schedule.faults.iter().zip(&faults);
        violations.extend(recoveries.flat_map(|(scheduled, impact)| slow_recoveries(scheduled, impact)));
        let result = |guarantee: &Guarantee| GuaranteeResult::of(*guarantee, &violations);
        Report {
            scenario: schedule.name.clone(),
            writes: schedule.writes,
            seed: schedule.seed,
            digest: format!("{:016x}", schedule.digest()),
            lasted: schedule.end,
            all_reads: OperationSummary::of(reads.iter()),
            all_writes: OperationSummary::of(writes.iter()),
            skipped,
            undecided,
            late_writes,
            faults,
            guarantees: Guarantee::ALL.iter().map(result).collect(),
        }
    }

    /// Whether every guarantee held.
    pub fn all_hold(&self) -> bool {
        self.guarantees.iter().all(|result| result.violations == 0)
    }
}

impl GuaranteeResult {
    fn of(guarantee: Guarantee, violations: &[Violation]) -> GuaranteeResult {
        let of_this = || violations.iter().filter(|violation| violation.guarantee == guarantee);
        let examples = of_this().take(EXAMPLES_MAX).map(|violation| violation.example.clone()).collect();
        GuaranteeResult { guarantee, violations: of_this().count(), examples }
    }
}

/// The time of one fault, from the end of the fault before to the beginning of the next one.
#[derive(Clone, Copy, Debug)]
struct FaultWindow {
    since: Duration,
    began: Duration,
    ended: Duration,
    until: Duration,
}

impl FaultWindow {
    fn of(active_intervals: &[ActiveInterval], number: usize, end: Duration) -> FaultWindow {
        let ActiveInterval { began, ended } = active_intervals[number];
        let others = || {
            active_intervals.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, other)| other)
        };
        let since = others().filter(|other| other.ended <= began).map(|other| other.ended).max();
        let until = others().filter(|other| other.began >= ended).map(|other| other.began).min();
        FaultWindow { since: since.unwrap_or_default(), began, ended, until: until.unwrap_or(end) }
    }

    fn phases(&self, samples: &[OperationSample]) -> Phases {
        let summary = |is_in: &dyn Fn(&OperationSample) -> bool| {
            OperationSummary::of(samples.iter().filter(|sample| is_in(sample)))
        };
        let before = summary(&|sample| sample.began >= self.since && sample.ended() <= self.began);
        let during = summary(&|sample| sample.ended() > self.began && sample.began < self.ended);
        let after = summary(&|sample| sample.began >= self.ended && sample.began < self.until);
        let limit = before.p99.map_or(HEALTHY_LATENCY, |p99| (p99 * HEALTHY_FACTOR).max(HEALTHY_LATENCY));
        let recovery = recovery(samples, self.began, self.until, limit);
        Phases { before, during, after, recovery }
    }
}

/// The recoveries from a fault that took longer than the scenario expects.
fn slow_recoveries(scheduled: &ScheduledFault, impact: &FaultImpact) -> Vec<Violation> {
    let expected = [
        ("reads", &impact.reads, scheduled.expect.reads_within),
        ("writes", &impact.writes, scheduled.expect.writes_within),
    ];
    let late = |(what, phases, within): (&str, &Phases, Option<emulator::clock::HumanDuration>)| {
        let within = within?;
        let took = match phases.recovery {
            Some(took) if took <= within.0 => return None,
            Some(took) => format!("{took:?}"),
            None => "longer than the run".to_owned(),
        };
        let example = format!("{}: {what} took {took} to recover, expected {within}", impact.fault);
        Some(Violation::new(Guarantee::Recovers, example))
    };
    expected.into_iter().filter_map(late).collect()
}

fn whole_milliseconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::schedule::RunOptions;

    const MS: Duration = Duration::from_millis(1);

    fn schedule(expect: &str) -> Schedule {
        let text = format!(
            "[[fault]]\nkind = 'drain'\nregion = 'East US'\nat = '1s'\nfor = '1s'\nexpect = {{ {expect} }}"
        );
        Schedule::new(
            &Scenario::read("x", &text).expect("valid"),
            WriteRegions::One,
            1,
            RunOptions::default(),
        )
    }

    fn sample(class: OperationClass, began: u32, failure: Option<&'static str>) -> OperationSample {
        OperationSample::new(class, MS * began, MS * 10, failure)
    }

    #[test]
    fn operations_are_assigned_to_phases_by_their_overlap_with_a_fault() {
        let schedule = schedule("reads-within = '100ms', writes-within = '2s'");
        let samples = vec![
            sample(OperationClass::Read, 100, None),
            sample(OperationClass::Read, 995, None),
            sample(OperationClass::Read, 1_400, Some("unavailable")),
            sample(OperationClass::Read, 2_000, None),
            sample(OperationClass::Write, 1_100, Some("undecided")),
        ];
        let record = WorkerRecord { samples, skipped: 2, late_writes: 1, ..WorkerRecord::default() };
        let active_intervals = vec![ActiveInterval { began: MS * 1_000, ended: MS * 2_000 }];
        let violations = vec![Violation::new(Guarantee::NothingIsLost, "gone".to_owned()); 9];
        let data = RunData { records: vec![record], active_intervals, violations, undecided: 1 };
        let report = Report::new(&schedule, data);
        let impact = &report.faults[0];
        assert_eq!(impact.fault, "drain East US");
        let counts = |phases: &Phases| {
            [&phases.before, &phases.during, &phases.after].map(|summary| summary.operations)
        };
        assert_eq!((counts(&impact.reads), counts(&impact.writes)), ([1, 2, 1], [0, 1, 0]));
        assert_eq!((impact.reads.recovery, impact.writes.recovery), (Some(MS * 410), Some(MS * 110)));
        assert_eq!((report.skipped, report.late_writes, report.undecided), (2, 1, 1));
        assert!(!report.all_hold());
        let result =
            |guarantee| report.guarantees.iter().find(|result| result.guarantee == guarantee).expect("one");
        assert_eq!(result(Guarantee::NothingIsLost).violations, 9);
        assert_eq!(result(Guarantee::NothingIsLost).examples.len(), EXAMPLES_MAX);
        assert_eq!(result(Guarantee::Recovers).violations, 1, "reads took longer than expected");
        assert_eq!(result(Guarantee::NothingIsLate).violations, 0);
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(json["faults"][0]["reads"]["recoveryMs"], 410.0);
        assert_eq!(json["promises"][0]["promise"], "nothing-is-lost");
        assert_eq!(json["promises"][1]["promise"], "refused-means-unchanged");
        assert_eq!((&json["promises"][0]["broken"], &json["resurfaced"]), (&9.into(), &1.into()));
    }
}
