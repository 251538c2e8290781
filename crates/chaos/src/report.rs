//! What came of it: each fault with what operations felt of it, and whether the promises held. Pure.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::inject::InForce;
use crate::load::Diary;
use crate::sample::{Class, Sample, Sum, recovery};
use crate::scenario::{Allowed, Writes};
use crate::schedule::{Planned, Schedule};

/// What is promised whatever goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Promise {
    /// No acknowledged write is lost.
    NothingIsLost,
    /// A write that was said to have changed nothing changed nothing.
    RefusedMeansUnchanged,
    /// No operation ends after its deadline.
    NothingIsLate,
    /// Reads succeed throughout.
    ReadsSucceed,
    /// A read sees every write that was acknowledged before it began.
    ReadsSeeWrites,
    /// A query finds every item once.
    QueriesAreExact,
    /// Writes succeed, where the scenario says so and whenever nothing is wrong.
    WritesSucceed,
    /// Operations are well again as soon as the scenario says.
    Recovers,
}

impl Promise {
    /// All of them, the most important first.
    pub const ALL: [Promise; 8] = [
        Promise::NothingIsLost,
        Promise::RefusedMeansUnchanged,
        Promise::NothingIsLate,
        Promise::ReadsSucceed,
        Promise::ReadsSeeWrites,
        Promise::QueriesAreExact,
        Promise::WritesSucceed,
        Promise::Recovers,
    ];

    /// In two or three words, for a line of all of them.
    pub fn short(self) -> &'static str {
        match self {
            Promise::NothingIsLost => "nothing lost",
            Promise::RefusedMeansUnchanged => "refused is unchanged",
            Promise::NothingIsLate => "nothing late",
            Promise::ReadsSucceed => "reads succeed",
            Promise::ReadsSeeWrites => "reads see writes",
            Promise::QueriesAreExact => "queries exact",
            Promise::WritesSucceed => "writes succeed",
            Promise::Recovers => "recovers in time",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Promise::NothingIsLost => "no acknowledged write is lost",
            Promise::RefusedMeansUnchanged => "a write that failed for certain changed nothing",
            Promise::NothingIsLate => "no operation ends after its deadline",
            Promise::ReadsSucceed => "reads succeed throughout",
            Promise::ReadsSeeWrites => "reads see what was acknowledged before them",
            Promise::QueriesAreExact => "queries find every item once",
            Promise::WritesSucceed => "writes succeed where they must",
            Promise::Recovers => "operations recover in the expected time",
        }
    }
}

/// A promise that was broken once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) promise: Promise,
    pub(crate) example: String,
}

impl Breach {
    pub(crate) fn new(promise: Promise, example: String) -> Breach {
        Breach { promise, example }
    }
}

/// Everything that was written down.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) diaries: Vec<Diary>,
    pub(crate) in_force: Vec<InForce>,
    /// Of the reading back.
    pub(crate) breaches: Vec<Breach>,
    pub(crate) undecided: usize,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// The scenario.
    pub scenario: String,
    /// Where the account takes writes.
    pub writes: Writes,
    /// What every draw came from.
    pub seed: u64,
    /// The schedule's number, in hexadecimal: the same schedule has the same.
    pub digest: String,
    /// How long the load lasted.
    #[serde(rename = "lastedMs", serialize_with = "whole_milliseconds")]
    pub lasted: Duration,
    /// All reads.
    pub all_reads: Sum,
    /// All writes.
    pub all_writes: Sum,
    /// Turns that were left out, because the worker was busy.
    pub skipped: u64,
    /// Writes of which nobody knows whether they happened.
    pub undecided: usize,
    /// How often such a write was seen over a later one.
    pub resurfaced: u64,
    /// What was felt of each fault.
    pub faults: Vec<Felt>,
    /// Whether the promises held.
    pub promises: Vec<Verdict>,
}

/// What operations felt of one fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Felt {
    /// What and where.
    pub fault: String,
    /// When it began, after the start.
    #[serde(rename = "beganMs", serialize_with = "whole_milliseconds")]
    pub began: Duration,
    /// When it ended.
    #[serde(rename = "endedMs", serialize_with = "whole_milliseconds")]
    pub ended: Duration,
    /// By reads.
    pub reads: Phases,
    /// By writes.
    pub writes: Phases,
}

/// Operations of one class around a fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Phases {
    /// Those that ended before it, since the fault before.
    pub before: Sum,
    /// Those that were under way while it lasted.
    pub during: Sum,
    /// Those that began after it, until the next fault.
    pub after: Sum,
    /// How long after its beginning operations were well again; nothing if they never were.
    #[serde(rename = "recoveryMs", serialize_with = "crate::sample::milliseconds")]
    pub recovery: Option<Duration>,
}

/// Whether one promise held.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Verdict {
    /// Which.
    pub promise: Promise,
    /// How often it was broken.
    pub broken: usize,
    /// A few of these, for whoever looks into it.
    pub examples: Vec<String>,
}

/// Examples of one promise that are kept.
const EXAMPLES_MAX: usize = 5;
/// Faster than this is well, however fast operations were before.
const WELL: Duration = Duration::from_millis(100);
/// And so is this many times what all but one in a hundred took before.
const WELL_FACTOR: u32 = 3;
/// A fault is felt a little longer than it lasts: by what was begun during it and is tried again.
const AFTERMATH: Duration = Duration::from_secs(1);

impl Report {
    pub(crate) fn new(schedule: &Schedule, facts: Facts) -> Report {
        let Facts { diaries, in_force, mut breaches, undecided } = facts;
        let (mut samples, mut skipped, mut resurfaced) = (Vec::new(), 0, 0);
        for diary in diaries {
            samples.extend(diary.samples);
            breaches.extend(diary.breaches);
            skipped += diary.skipped;
            resurfaced += diary.resurfaced;
        }
        samples.sort_by_key(|sample| sample.began);
        let of = |class: Class| -> Vec<Sample> {
            samples.iter().filter(|sample| sample.class == class).copied().collect()
        };
        let (reads, writes) = (of(Class::Read), of(Class::Write));
        let faults: Vec<Felt> = (0..in_force.len())
            .map(|number| {
                let window = Window::of(&in_force, number, schedule.end);
                Felt {
                    fault: schedule.faults[number].to_string(),
                    began: window.began,
                    ended: window.ended,
                    reads: window.phases(&reads),
                    writes: window.phases(&writes),
                }
            })
            .collect();
        breaches.extend(
            schedule.faults.iter().zip(&faults).flat_map(|(planned, felt)| slow_recoveries(planned, felt)),
        );
        Report {
            scenario: schedule.name.clone(),
            writes: schedule.writes,
            seed: schedule.seed,
            digest: format!("{:016x}", schedule.digest()),
            lasted: schedule.end,
            all_reads: Sum::of(reads.iter()),
            all_writes: Sum::of(writes.iter()),
            skipped,
            undecided,
            resurfaced,
            faults,
            promises: Promise::ALL.iter().map(|promise| Verdict::of(*promise, &breaches)).collect(),
        }
    }

    /// Whether every promise held.
    pub fn holds(&self) -> bool {
        self.promises.iter().all(|verdict| verdict.broken == 0)
    }
}

impl Verdict {
    fn of(promise: Promise, breaches: &[Breach]) -> Verdict {
        let broken: Vec<&Breach> = breaches.iter().filter(|breach| breach.promise == promise).collect();
        let examples = broken.iter().take(EXAMPLES_MAX).map(|breach| breach.example.clone()).collect();
        Verdict { promise, broken: broken.len(), examples }
    }
}

/// The time around one fault.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Duration,
    began: Duration,
    ended: Duration,
    until: Duration,
}

impl Window {
    fn of(in_force: &[InForce], number: usize, end: Duration) -> Window {
        let InForce { began, ended } = in_force[number];
        let others =
            || in_force.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, other)| other);
        let since = others().filter(|other| other.ended <= began).map(|other| other.ended).max();
        let until = others().filter(|other| other.began >= ended).map(|other| other.began).min();
        Window { since: since.unwrap_or_default(), began, ended, until: until.unwrap_or(end) }
    }

    fn phases(&self, samples: &[Sample]) -> Phases {
        let sum = |is_in: &dyn Fn(&Sample) -> bool| Sum::of(samples.iter().filter(|sample| is_in(sample)));
        let before = sum(&|sample| sample.began >= self.since && sample.ended() <= self.began);
        let during = sum(&|sample| sample.ended() > self.began && sample.began < self.ended);
        let after = sum(&|sample| sample.began >= self.ended && sample.began < self.until);
        let limit = before.p99.map_or(WELL, |p99| (p99 * WELL_FACTOR).max(WELL));
        let recovery = recovery(samples, self.began, self.until, limit);
        Phases { before, during, after, recovery }
    }
}

/// Which promise a failed operation breaks, if any: one that touches a fault may be allowed to fail.
pub(crate) fn forbids_failure(faults: &[Planned], sample: &Sample) -> Option<Promise> {
    let touched = || {
        faults.iter().filter(|fault| sample.ended() > fault.begins && sample.began < fault.ends + AFTERMATH)
    };
    let allowed = match sample.class {
        Class::Read => touched().any(|fault| fault.expect.reads == Allowed::MayFail),
        Class::Write => touched().any(|fault| fault.expect.writes != Some(Allowed::Succeed)),
    };
    let promise = match sample.class {
        Class::Read => Promise::ReadsSucceed,
        Class::Write => Promise::WritesSucceed,
    };
    (!allowed).then_some(promise)
}

/// Recoveries that took longer than the scenario says.
fn slow_recoveries(planned: &Planned, felt: &Felt) -> Vec<Breach> {
    let expected = [
        ("reads", &felt.reads, planned.expect.reads_within),
        ("writes", &felt.writes, planned.expect.writes_within),
    ];
    let late = |(what, phases, within): (&str, &Phases, Option<emulator::clock::Span>)| {
        let within = within?;
        let took = match phases.recovery {
            Some(took) if took <= within.0 => return None,
            Some(took) => format!("{took:?}"),
            None => "longer than the run".to_owned(),
        };
        let example = format!("{}: {what} took {took} to recover, expected {within}", felt.fault);
        Some(Breach::new(Promise::Recovers, example))
    };
    expected.into_iter().filter_map(late).collect()
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        match &self.kind {
            crate::scenario::FaultKind::Splits { .. } => Ok(()),
            _ if self.regions.len() > 1 => f.write_str(" everywhere"),
            _ => write!(f, " {}", self.regions.join(", ")),
        }
    }
}

fn whole_milliseconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::schedule::Pace;

    const MS: Duration = Duration::from_millis(1);

    fn schedule(expect: &str) -> Schedule {
        let text = format!(
            "[[fault]]\nkind = 'drain'\nregion = 'East US'\nat = '1s'\nfor = '1s'\nexpect = {{ {expect} }}"
        );
        Schedule::new(&Scenario::read("x", &text).expect("valid"), Writes::One, 1, Pace::default())
    }

    fn sample(class: Class, began: u32, failure: Option<&'static str>) -> Sample {
        Sample::new(class, MS * began, MS * 10, failure)
    }

    #[test]
    fn an_operation_may_fail_only_where_a_fault_allows_it() {
        let (read, write) = (Promise::ReadsSucceed, Promise::WritesSucceed);
        for (expect, class, began, broken) in [
            ("", Class::Read, 500, Some(read)),
            ("", Class::Read, 1_500, Some(read)),
            ("reads = 'may-fail'", Class::Read, 1_500, None),
            ("reads = 'may-fail'", Class::Read, 500, Some(read)),
            ("", Class::Write, 1_500, None),
            ("", Class::Write, 995, None),
            ("", Class::Write, 2_900, None),
            ("", Class::Write, 3_100, Some(write)),
            ("", Class::Write, 900, Some(write)),
            ("writes = 'succeed'", Class::Write, 1_500, Some(write)),
        ] {
            let found = forbids_failure(&schedule(expect).faults, &sample(class, began, Some("x")));
            assert_eq!(found, broken, "{expect} {class:?} at {began}");
        }
    }

    #[test]
    fn operations_are_told_by_when_they_touch_a_fault() {
        let schedule = schedule("reads-within = '100ms', writes-within = '2s'");
        let samples = vec![
            sample(Class::Read, 100, None),
            sample(Class::Read, 995, None),
            sample(Class::Read, 1_400, Some("unavailable")),
            sample(Class::Read, 2_000, None),
            sample(Class::Write, 1_100, Some("undecided")),
        ];
        let diary = Diary { samples, skipped: 2, resurfaced: 1, ..Diary::default() };
        let in_force = vec![InForce { began: MS * 1_000, ended: MS * 2_000 }];
        let breaches = vec![Breach::new(Promise::NothingIsLost, "gone".to_owned()); 9];
        let report = Report::new(&schedule, Facts { diaries: vec![diary], in_force, breaches, undecided: 1 });
        let felt = &report.faults[0];
        assert_eq!(felt.fault, "drain East US");
        let counts =
            |phases: &Phases| [&phases.before, &phases.during, &phases.after].map(|sum| sum.operations);
        assert_eq!((counts(&felt.reads), counts(&felt.writes)), ([1, 2, 1], [0, 1, 0]));
        assert_eq!((felt.reads.recovery, felt.writes.recovery), (Some(MS * 410), Some(MS * 110)));
        assert_eq!((report.skipped, report.resurfaced, report.undecided), (2, 1, 1));
        assert!(!report.holds());
        let verdict =
            |promise| report.promises.iter().find(|verdict| verdict.promise == promise).expect("told");
        assert_eq!(verdict(Promise::NothingIsLost).broken, 9);
        assert_eq!(verdict(Promise::NothingIsLost).examples.len(), EXAMPLES_MAX);
        assert_eq!(verdict(Promise::Recovers).broken, 1, "reads took longer than expected");
        assert_eq!(verdict(Promise::NothingIsLate).broken, 0);
        let json = serde_json::to_value(&report).expect("JSON");
        assert_eq!(json["faults"][0]["reads"]["recoveryMs"], 410.0);
        assert_eq!(json["promises"][0]["promise"], "nothing-is-lost");
    }
}
