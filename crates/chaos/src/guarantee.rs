//! The guarantees that must hold during a run, and their violations. Pure.

use std::time::Duration;

use serde::Serialize;

use crate::sample::{OperationClass, OperationSample};
use crate::scenario::FailureExpectation;
use crate::schedule::ScheduledFault;

/// A guarantee that must hold whatever faults there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Guarantee {
    /// No acknowledged write is lost.
    NothingIsLost,
    /// A write that was rejected changed nothing.
    #[serde(rename = "refused-means-unchanged")]
    RejectedChangesNothing,
    /// No operation ends after its deadline.
    NothingIsLate,
    /// Reads succeed throughout the run.
    ReadsSucceed,
    /// A read sees every write that was acknowledged before the read began.
    ReadsSeeWrites,
    /// A query finds every item exactly once.
    QueriesAreExact,
    /// Writes succeed while there is no fault, and during faults whose scenario says so.
    WritesSucceed,
    /// Operations recover within the time of the scenario.
    Recovers,
    /// Operations leave the region of a fault within the time of the scenario, and are fast from then on.
    RegionIsLeft,
    /// A region is used again within the time of the scenario after its fault.
    RegionIsFound,
    /// Reads continue in the region of a fault that does not concern them.
    ReadsStay,
    /// No more writes end undecided than the scenario says.
    FewUndecided,
    /// A call with an invalid argument fails at once, as an error of its caller, and no region is given up for it.
    InvalidCallsFailAlone,
    /// No call of the workload panics.
    NothingPanics,
}

impl Guarantee {
    /// All guarantees, the most important first.
    pub const ALL: [Guarantee; 14] = [
        Guarantee::NothingIsLost,
        Guarantee::RejectedChangesNothing,
        Guarantee::NothingIsLate,
        Guarantee::ReadsSucceed,
        Guarantee::ReadsSeeWrites,
        Guarantee::QueriesAreExact,
        Guarantee::WritesSucceed,
        Guarantee::Recovers,
        Guarantee::RegionIsLeft,
        Guarantee::RegionIsFound,
        Guarantee::ReadsStay,
        Guarantee::FewUndecided,
        Guarantee::InvalidCallsFailAlone,
        Guarantee::NothingPanics,
    ];

    /// A label of two or three words.
    pub fn label(self) -> &'static str {
        match self {
            Guarantee::NothingIsLost => "nothing lost",
            Guarantee::RejectedChangesNothing => "rejected is unchanged",
            Guarantee::NothingIsLate => "nothing late",
            Guarantee::ReadsSucceed => "reads succeed",
            Guarantee::ReadsSeeWrites => "reads see writes",
            Guarantee::QueriesAreExact => "queries exact",
            Guarantee::WritesSucceed => "writes succeed",
            Guarantee::Recovers => "recovers in time",
            Guarantee::RegionIsLeft => "region left",
            Guarantee::RegionIsFound => "region found again",
            Guarantee::ReadsStay => "reads stay",
            Guarantee::FewUndecided => "few undecided",
            Guarantee::InvalidCallsFailAlone => "invalid calls fail alone",
            Guarantee::NothingPanics => "nothing panics",
        }
    }

    /// A description in one sentence.
    pub fn description(self) -> &'static str {
        match self {
            Guarantee::NothingIsLost => "no acknowledged write is lost",
            Guarantee::RejectedChangesNothing => "a rejected write changed nothing",
            Guarantee::NothingIsLate => "no operation ends after its deadline",
            Guarantee::ReadsSucceed => "reads succeed throughout",
            Guarantee::ReadsSeeWrites => "reads see what was acknowledged before them",
            Guarantee::QueriesAreExact => "queries find every item once",
            Guarantee::WritesSucceed => "writes succeed where they must",
            Guarantee::Recovers => "operations recover in the expected time",
            Guarantee::RegionIsLeft => "a failed region is left in the expected time",
            Guarantee::RegionIsFound => "a region is found again in the expected time",
            Guarantee::ReadsStay => "reads stay in a region whose fault does not concern them",
            Guarantee::FewUndecided => "writes are undecided only as often as expected",
            Guarantee::InvalidCallsFailAlone => {
                "an invalid call fails at once, and no region is given up for it"
            }
            Guarantee::NothingPanics => "no call panics",
        }
    }
}

/// One violation of a guarantee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) guarantee: Guarantee,
    pub(crate) example: String,
}

impl Violation {
    pub(crate) fn new(guarantee: Guarantee, example: String) -> Violation {
        Violation { guarantee, example }
    }
}

/// A fault affects operations a little longer than it lasts: those that began during it and are retried.
pub(crate) const AFTERMATH: Duration = Duration::from_secs(1);

/// The guarantee that a failed operation violates; none if it overlaps a fault that allows failures.
pub(crate) fn violated_by_failure(faults: &[ScheduledFault], sample: &OperationSample) -> Option<Guarantee> {
    let overlapping = || {
        faults.iter().filter(|fault| sample.ended() > fault.begins && sample.began < fault.ends + AFTERMATH)
    };
    let (is_allowed, guarantee) = match sample.class {
        OperationClass::Read => (
            overlapping().any(|fault| fault.expect.reads == FailureExpectation::MayFail),
            Guarantee::ReadsSucceed,
        ),
        OperationClass::Write => (
            overlapping().any(|fault| fault.expect.writes != Some(FailureExpectation::Succeed)),
            Guarantee::WritesSucceed,
        ),
    };
    (!is_allowed).then_some(guarantee)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, WriteRegions};
    use crate::schedule::{RunOptions, Schedule};

    const MS: Duration = Duration::from_millis(1);

    fn schedule(expect: &str) -> Schedule {
        let text = format!(
            "[[fault]]\nkind = 'drain'\nregion = 'East US'\nat = '1s'\nfor = '1s'\nexpect = {{ {expect} }}"
        );
        let scenario = Scenario::read("x", &text).expect("valid");
        Schedule::new(&scenario, WriteRegions::One, 1, RunOptions::default())
    }

    #[test]
    fn an_operation_may_fail_only_where_a_fault_allows_it() {
        use OperationClass::{Read, Write};
        let (reads, writes) = (Guarantee::ReadsSucceed, Guarantee::WritesSucceed);
        for (expect, class, began, violated) in [
            ("", Read, 500, Some(reads)),
            ("", Read, 1_500, Some(reads)),
            ("reads = 'may-fail'", Read, 1_500, None),
            ("reads = 'may-fail'", Read, 500, Some(reads)),
            ("", Write, 1_500, None),
            ("", Write, 995, None),
            ("", Write, 2_900, None),
            ("", Write, 3_100, Some(writes)),
            ("", Write, 900, Some(writes)),
            ("writes = 'succeed'", Write, 1_500, Some(writes)),
        ] {
            let sample = OperationSample::new(class, MS * began, MS * 10, Some("x"));
            let found = violated_by_failure(&schedule(expect).faults, &sample);
            assert_eq!(found, violated, "{expect} {class:?} at {began}");
        }
    }
}
