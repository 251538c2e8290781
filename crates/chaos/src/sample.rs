//! One operation, as it went, and what many of them add up to. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use perihelion::Diagnostics;
use serde::Serialize;

/// Reads and writes are looked at apart: a region that only writes may fail without harm to reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Reads and queries.
    Read,
    /// Creates and upserts.
    Write,
}

/// One operation, as it went.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// What it was.
    pub class: Class,
    /// When it began, after the start of the run.
    pub began: Duration,
    /// How long it took.
    pub took: Duration,
    /// What it failed with, if it did.
    pub failure: Option<&'static str>,
    /// Second attempts beside a slow one.
    pub hedges: u32,
    /// Attempts after the first one that were no hedges.
    pub retries: u32,
}

impl Sample {
    /// An operation of which nothing is known but how it went.
    pub fn new(class: Class, began: Duration, took: Duration, failure: Option<&'static str>) -> Sample {
        Sample { class, began, took, failure, hedges: 0, retries: 0 }
    }

    /// With what its diagnostics tell.
    #[must_use]
    pub fn with(mut self, diagnostics: Option<&Diagnostics>) -> Sample {
        if let Some(diagnostics) = diagnostics {
            let totals = diagnostics.totals();
            self.hedges = totals.hedges;
            self.retries = totals.attempts.saturating_sub(1).saturating_sub(totals.hedges);
        }
        self
    }

    /// When it ended.
    pub fn ended(&self) -> Duration {
        self.began + self.took
    }

    /// Whether it succeeded, and within `limit`.
    pub fn is_well(&self, limit: Duration) -> bool {
        self.failure.is_none() && self.took <= limit
    }
}

/// What many operations add up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Sum {
    /// How many.
    pub operations: u64,
    /// Half of them took no longer; nothing without operations.
    #[serde(rename = "p50Ms", serialize_with = "milliseconds")]
    pub p50: Option<Duration>,
    /// All but one in a hundred took no longer.
    #[serde(rename = "p99Ms", serialize_with = "milliseconds")]
    pub p99: Option<Duration>,
    /// None took longer.
    #[serde(rename = "maxMs", serialize_with = "milliseconds")]
    pub max: Option<Duration>,
    /// Those that failed, by kind.
    pub failures: BTreeMap<&'static str, u64>,
    /// Second attempts.
    pub hedges: u64,
    /// Further attempts.
    pub retries: u64,
}

impl Sum {
    /// Adds these up.
    pub fn of<'s>(samples: impl Iterator<Item = &'s Sample>) -> Sum {
        let mut sum = Sum::default();
        let mut times: Vec<Duration> = Vec::new();
        for sample in samples {
            sum.operations += 1;
            sum.hedges += u64::from(sample.hedges);
            sum.retries += u64::from(sample.retries);
            times.push(sample.took);
            if let Some(kind) = sample.failure {
                *sum.failures.entry(kind).or_default() += 1;
            }
        }
        times.sort_unstable();
        sum.p50 = quantile(&times, 0.5);
        sum.p99 = quantile(&times, 0.99);
        sum.max = times.last().copied();
        sum
    }

    /// How many failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

/// The time that a share of them did not exceed.
fn quantile(sorted: &[Duration], share: f64) -> Option<Duration> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// Operations are well again when none that begins or goes on within this time is unwell.
const QUIET: Duration = Duration::from_millis(500);

/// How long after `began` operations were well again: the earliest moment from which on, for a while, each
/// succeeds within `limit`. Nothing if that does not come before `until`.
pub fn recovery(samples: &[Sample], began: Duration, until: Duration, limit: Duration) -> Option<Duration> {
    let mut well_at = began;
    loop {
        let unwell = |sample: &&Sample| {
            sample.ended() > well_at && sample.began < well_at + QUIET && !sample.is_well(limit)
        };
        match samples.iter().filter(unwell).map(Sample::ended).max() {
            None => return (well_at < until).then(|| well_at - began),
            Some(ended) => well_at = ended,
        }
    }
}

pub(crate) fn milliseconds<S: serde::Serializer>(
    time: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn took(began: u32, took: u32, failure: Option<&'static str>) -> Sample {
        Sample::new(Class::Read, MS * began, MS * took, failure)
    }

    #[test]
    fn many_operations_add_up() {
        let samples: Vec<Sample> =
            (1..=200).map(|at| took(at, at, (at % 100 == 0).then_some("unavailable"))).collect();
        let sum = Sum::of(samples.iter());
        assert_eq!((sum.operations, sum.failed(), sum.failures["unavailable"]), (200, 2, 2));
        assert_eq!((sum.p50, sum.p99, sum.max), (Some(MS * 100), Some(MS * 198), Some(MS * 200)));
        assert_eq!(Sum::of([].iter()), Sum::default());
        assert_eq!(Sum::of([took(0, 7, None)].iter()).p99, Some(MS * 7));
    }

    #[test]
    fn recovery_is_when_operations_are_well_again_and_stay_so() {
        let limit = MS * 100;
        let table: &[(&str, Vec<Sample>, Option<u32>)] = &[
            ("not felt", vec![took(900, 50, None), took(1_100, 50, None)], Some(0)),
            ("one that was under way fails", vec![took(950, 100, Some("x"))], Some(50)),
            ("one before is another matter", vec![took(500, 400, Some("x"))], Some(0)),
            ("slow is unwell", vec![took(1_000, 101, None)], Some(101)),
            (
                "twice, and close together",
                vec![took(1_000, 10, Some("x")), took(1_400, 10, Some("x"))],
                Some(410),
            ),
            (
                "a stray one much later is none of it",
                vec![took(1_000, 10, Some("x")), took(2_000, 900, None)],
                Some(10),
            ),
            ("never", (10..31).map(|at| took(at * 100, 90, Some("x"))).collect(), None),
        ];
        for (name, samples, expected) in table {
            let found = recovery(samples, MS * 1_000, MS * 3_000, limit);
            assert_eq!(found, expected.map(|ms| MS * ms), "{name}");
        }
    }
}
