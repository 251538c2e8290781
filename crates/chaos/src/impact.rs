//! The impact of a fault on operations: before, during and after it, and which regions they used. Pure.

use std::time::Duration;

use serde::Serialize;

use crate::inject::ActiveInterval;
use crate::region_set::RegionSet;
use crate::sample::{OperationSample, OperationSummary, recovery, whole_milliseconds};
use crate::schedule::Schedule;

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
    /// How long operations were observed after the end of the fault: until the next fault, or the end of the run.
    #[serde(rename = "observedMs", serialize_with = "whole_milliseconds")]
    pub observed: Duration,
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
    /// How long after the beginning of the fault the last operation began that used its region; none if none did.
    #[serde(rename = "leftMs", serialize_with = "crate::sample::milliseconds")]
    pub left: Option<Duration>,
    /// The operations that began during the fault, later than the scenario allows them to use its region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<OperationSummary>,
    /// How many operations began during the fault and were sent to a region without the fault first.
    pub diverted: u64,
    /// How long after the end of the fault an operation ended that its region served at the first attempt; none if
    /// none was.
    #[serde(rename = "foundMs", serialize_with = "crate::sample::milliseconds")]
    pub found: Option<Duration>,
}

/// A latency that counts as healthy, even if operations were faster before the fault.
const HEALTHY_LATENCY: Duration = Duration::from_millis(100);
/// How many times the 99th percentile before the fault counts as healthy.
const HEALTHY_FACTOR: u32 = 3;

impl FaultImpact {
    /// The impact of the fault with this number on the reads and the writes of a run that `lasted` so long.
    pub(crate) fn new(
        schedule: &Schedule,
        number: usize,
        active_intervals: &[ActiveInterval],
        lasted: Duration,
        (reads, writes): (&[OperationSample], &[OperationSample]),
    ) -> FaultImpact {
        let fault = &schedule.faults[number];
        let window = FaultWindow::of(active_intervals, number, lasted);
        let regions = schedule.regions_of(fault);
        FaultImpact {
            fault: fault.to_string(),
            began: window.began,
            ended: window.ended,
            observed: window.until.saturating_sub(window.ended),
            reads: window.phases(reads, regions, fault.expect.left_within.map(|within| within.0)),
            writes: window.phases(writes, regions, fault.expect.writes_left_within.map(|within| within.0)),
        }
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

    fn phases(
        &self,
        samples: &[OperationSample],
        regions: RegionSet,
        left_within: Option<Duration>,
    ) -> Phases {
        let summary = |is_in: &dyn Fn(&OperationSample) -> bool| {
            OperationSummary::of(samples.iter().filter(|sample| is_in(sample)))
        };
        let before = summary(&|sample| sample.began >= self.since && sample.ended() <= self.began);
        let during = summary(&|sample| sample.ended() > self.began && sample.began < self.ended);
        let after = summary(&|sample| sample.began >= self.ended && sample.began < self.until);
        let limit = before.p99.map_or(HEALTHY_LATENCY, |p99| (p99 * HEALTHY_FACTOR).max(HEALTHY_LATENCY));
        let recovery = recovery(samples, self.began, self.until, limit);
        let began_during =
            || samples.iter().filter(|sample| sample.began >= self.began && sample.began < self.ended);
        let used = began_during().filter(|sample| sample.regions.all.intersects(regions));
        let left = used.map(|sample| sample.began - self.began).max();
        let settled = left_within.map(|within| {
            OperationSummary::of(began_during().filter(|sample| sample.began > self.began + within))
        });
        let has_attempt = |sample: &&OperationSample| sample.regions.all != RegionSet::default();
        let is_diverted = |sample: &&OperationSample| !sample.regions.first.intersects(regions);
        let diverted = began_during().filter(has_attempt).filter(is_diverted).count() as u64;
        let found = samples
            .iter()
            .filter(|sample| sample.began < self.until && sample.is_served_first_in(regions, self.ended))
            .map(|sample| sample.ended() - self.ended)
            .min();
        Phases { before, during, after, recovery, left, settled, diverted, found }
    }
}
