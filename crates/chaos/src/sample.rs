//! Samples of operations, their summary with latency percentiles, and the recovery after a fault. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use perihelion::Diagnostics;
use perihelion::driver::Region;
use serde::Serialize;

use crate::region_set::{RegionSet, RegionsUsed};

/// Whether an operation reads or writes. The two are reported separately, because a fault may affect only one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationClass {
    /// Point reads and queries.
    Read,
    /// Creates and upserts of items.
    Write,
}

/// One operation with its latency and outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OperationSample {
    /// Whether it read or wrote.
    pub class: OperationClass,
    /// When it began, counted from the start of the run.
    pub began: Duration,
    /// How long it took.
    pub took: Duration,
    /// The kind of its error, if it failed.
    pub failure: Option<&'static str>,
    /// The number of hedged attempts.
    pub hedges: u32,
    /// The number of attempts after the first one, without hedges.
    pub retries: u32,
    /// The regions that its attempts were sent to.
    pub regions: RegionsUsed,
}

impl OperationSample {
    /// A sample without diagnostics.
    pub fn new(
        class: OperationClass,
        began: Duration,
        took: Duration,
        failure: Option<&'static str>,
    ) -> OperationSample {
        OperationSample {
            class,
            began,
            took,
            failure,
            hedges: 0,
            retries: 0,
            regions: RegionsUsed::default(),
        }
    }

    /// This sample with the hedges, retries and regions of its requests; `regions` are those of the account.
    #[must_use]
    pub fn with_diagnostics<'d>(
        mut self,
        requests: impl IntoIterator<Item = &'d Diagnostics>,
        regions: &[Region],
    ) -> OperationSample {
        for diagnostics in requests {
            let totals = diagnostics.totals();
            self.hedges += totals.hedges;
            self.retries += totals.attempts.saturating_sub(1).saturating_sub(totals.hedges);
            self.regions.add(diagnostics, regions);
        }
        self
    }

    /// When it ended, counted from the start of the run.
    pub fn ended(&self) -> Duration {
        self.began + self.took
    }

    /// Whether it began at `since` or later and succeeded, and its first attempt was sent to one of `regions`.
    pub(crate) fn is_served_first_in(&self, regions: RegionSet, since: Duration) -> bool {
        self.failure.is_none() && self.began >= since && self.regions.first.intersects(regions)
    }

    /// Whether it succeeded within `limit`.
    pub fn is_healthy(&self, limit: Duration) -> bool {
        self.failure.is_none() && self.took <= limit
    }
}

/// The number, latency percentiles and failures of many operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct OperationSummary {
    /// The number of operations.
    pub operations: u64,
    /// The median latency, to three digits; none without operations.
    #[serde(rename = "p50Ms", serialize_with = "milliseconds")]
    pub p50: Option<Duration>,
    /// The 99th percentile of the latency, to three digits.
    #[serde(rename = "p99Ms", serialize_with = "milliseconds")]
    pub p99: Option<Duration>,
    /// The longest latency, exactly.
    #[serde(rename = "maxMs", serialize_with = "milliseconds")]
    pub max: Option<Duration>,
    /// The number of failed operations by the kind of their error.
    pub failures: BTreeMap<&'static str, u64>,
    /// The number of hedged attempts.
    pub hedges: u64,
    /// The number of attempts after the first one, without hedges.
    pub retries: u64,
}

/// Significant digits of the percentiles.
const PERCENTILE_DIGITS: u8 = 3;

impl OperationSummary {
    /// The summary of these samples.
    pub fn of<'s>(samples: impl Iterator<Item = &'s OperationSample>) -> OperationSummary {
        let mut summary = OperationSummary::default();
        let mut latencies = Histogram::<u64>::new(PERCENTILE_DIGITS).expect("a valid number of digits");
        for sample in samples {
            summary.operations += 1;
            summary.hedges += u64::from(sample.hedges);
            summary.retries += u64::from(sample.retries);
            summary.max = summary.max.max(Some(sample.took));
            latencies += u64::try_from(sample.took.as_micros()).unwrap_or(u64::MAX);
            if let Some(kind) = sample.failure {
                *summary.failures.entry(kind).or_default() += 1;
            }
        }
        let percentile = |quantile: f64| {
            let latency = Duration::from_micros(latencies.value_at_quantile(quantile));
            // The histogram rounds up to the end of a bucket, which may lie behind the longest latency.
            summary.max.map(|max| latency.min(max))
        };
        (summary.p50, summary.p99) = (percentile(0.5), percentile(0.99));
        summary
    }

    /// The number of operations that failed.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }
}

/// How long all operations must be healthy before they count as recovered.
const RECOVERED_FOR: Duration = Duration::from_millis(500);

/// How long after `began` operations recovered: the earliest time from which each operation of the next while succeeds
/// within `limit`. None if that is not before `until`.
pub fn recovery(
    samples: &[OperationSample],
    began: Duration,
    until: Duration,
    limit: Duration,
) -> Option<Duration> {
    let mut recovered_at = began;
    loop {
        let is_unhealthy = |sample: &&OperationSample| {
            sample.ended() > recovered_at
                && sample.began < recovered_at + RECOVERED_FOR
                && !sample.is_healthy(limit)
        };
        match samples.iter().filter(is_unhealthy).map(OperationSample::ended).max() {
            None => return (recovered_at < until).then(|| recovered_at - began),
            Some(ended) => recovered_at = ended,
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

pub(crate) fn whole_milliseconds<S: serde::Serializer>(
    time: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn took(began: u32, took: u32, failure: Option<&'static str>) -> OperationSample {
        OperationSample::new(OperationClass::Read, MS * began, MS * took, failure)
    }

    #[test]
    fn a_summary_has_counts_and_percentiles() {
        let samples: Vec<OperationSample> =
            (1..=200).map(|at| took(at, at, (at % 100 == 0).then_some("unavailable"))).collect();
        let summary = OperationSummary::of(samples.iter());
        assert_eq!((summary.operations, summary.failed(), summary.failures["unavailable"]), (200, 2, 2));
        let is_near = |found: Option<Duration>, expected: Duration| {
            found.is_some_and(|found| found >= expected && found <= expected.mul_f64(1.001))
        };
        assert!(is_near(summary.p50, MS * 100) && is_near(summary.p99, MS * 198), "{summary:?}");
        assert_eq!(summary.max, Some(MS * 200));
        assert_eq!(OperationSummary::of([].iter()), OperationSummary::default());
        assert_eq!(OperationSummary::of([took(0, 7, None)].iter()).p99, Some(MS * 7));
    }

    #[test]
    fn recovery_is_when_operations_are_healthy_and_stay_so() {
        let limit = MS * 100;
        let table: &[(&str, Vec<OperationSample>, Option<u32>)] = &[
            ("no effect", vec![took(900, 50, None), took(1_100, 50, None)], Some(0)),
            ("one in flight fails", vec![took(950, 100, Some("x"))], Some(50)),
            ("one before the fault is ignored", vec![took(500, 400, Some("x"))], Some(0)),
            ("slow is unhealthy", vec![took(1_000, 101, None)], Some(101)),
            (
                "twice, and close together",
                vec![took(1_000, 10, Some("x")), took(1_400, 10, Some("x"))],
                Some(410),
            ),
            (
                "a single one much later is ignored",
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
