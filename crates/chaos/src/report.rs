//! The report of a run: the impact of each fault on operations, and whether the guarantees held. Pure.

use std::time::Duration;

use serde::Serialize;

use crate::guarantee::{Guarantee, Violation};
use crate::impact_check::unmet_expectations;
use crate::inject::ActiveInterval;
use crate::sample::{OperationClass, OperationSample, OperationSummary, whole_milliseconds};
use crate::scenario::WriteRegions;
use crate::schedule::Schedule;
use crate::workers::WorkerRecord;

pub use crate::impact::{FaultImpact, Phases};

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
    /// The variant in words: the kind of account, and the settings of the client that the scenario names.
    pub variant: String,
    /// Whether the client hedged.
    pub hedging: bool,
    /// The deadline of every operation.
    #[serde(rename = "deadlineMs", serialize_with = "whole_milliseconds")]
    pub deadline: Duration,
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
    /// The number of calls with an invalid argument, which are neither reads nor writes.
    pub invalid_calls: u64,
    /// The impact of each fault.
    pub faults: Vec<FaultImpact>,
    /// Whether each guarantee held.
    #[serde(rename = "promises")]
    pub guarantees: Vec<GuaranteeResult>,
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
impl Report {
    pub(crate) fn new(schedule: &Schedule, data: RunData) -> Report {
        let RunData { records, active_intervals, mut violations, undecided } = data;
        let (mut samples, mut skipped, mut late_writes, mut invalid_calls) = (Vec::new(), 0, 0, 0);
        for record in records {
            samples.extend(record.samples);
            violations.extend(record.violations);
            skipped += record.skipped;
            late_writes += record.late_writes;
            invalid_calls += record.invalid_calls;
        }
        samples.sort_by_key(|sample| sample.began);
        let of = |class: OperationClass| -> Vec<OperationSample> {
            samples.iter().filter(|sample| sample.class == class).copied().collect()
        };
        let (reads, writes) = (of(OperationClass::Read), of(OperationClass::Write));
        // A run that waited for a region to be found lasted longer than its schedule.
        let lasted = samples.iter().map(OperationSample::ended).max().unwrap_or_default().max(schedule.end);
        let faults: Vec<FaultImpact> = (0..active_intervals.len())
            .map(|number| FaultImpact::new(schedule, number, &active_intervals, lasted, (&reads, &writes)))
            .collect();
        for (scheduled, impact) in schedule.faults.iter().zip(&faults) {
            violations.extend(unmet_expectations(scheduled, impact));
        }
        let result = |guarantee: &Guarantee| GuaranteeResult::of(*guarantee, &violations);
        Report {
            scenario: schedule.name.clone(),
            writes: schedule.variant.writes,
            variant: schedule.variant.to_string(),
            hedging: schedule.hedges(),
            deadline: schedule.workload.deadline,
            seed: schedule.seed,
            digest: format!("{:016x}", schedule.digest()),
            lasted,
            all_reads: OperationSummary::of(reads.iter()),
            all_writes: OperationSummary::of(writes.iter()),
            skipped,
            undecided,
            late_writes,
            invalid_calls,
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
