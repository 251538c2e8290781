//! What a scenario expects during and after a fault.

use std::time::Duration;

use emulator::clock::HumanDuration;
use serde::{Deserialize, Serialize};

use crate::duration::DurationRange;
use crate::invalid_scenario::InvalidScenario;

/// What must hold during a fault.
#[derive(Clone, Debug, PartialEq, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Expectation {
    /// Whether reads may fail. Default: they may not.
    pub reads: FailureExpectation,
    /// Whether writes may fail. Default: they may.
    pub writes: Option<FailureExpectation>,
    /// Reads recover within this time after the beginning of the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads_within: Option<HumanDuration>,
    /// Writes recover within this time after the beginning of the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_within: Option<HumanDuration>,
    /// No read that begins later than this after the beginning of the fault uses its region, and from then on the
    /// median latency is that of the time before the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_within: Option<HumanDuration>,
    /// No write that begins later than this after the beginning of the fault uses its region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes_left_within: Option<HumanDuration>,
    /// A read is served by the region again, at its first attempt, within this time after the end of the fault. The run
    /// continues until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_within: Option<HumanDuration>,
    /// How much longer than twice the median before the fault the median of reads may be that left the region. Default: 5 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_tolerance: Option<HumanDuration>,
    /// Whether all reads that begin during the fault must be sent to its region first. Default: no.
    pub reads_stay: bool,
    /// How many writes that overlap the fault may end undecided. Default: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided_max: Option<u64>,
}

/// Whether operations may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureExpectation {
    /// All operations must succeed.
    #[default]
    Succeed,
    /// Operations may fail during the fault.
    MayFail,
}

/// How much longer than twice the median before a fault the median may be, if the scenario does not say.
const MEDIAN_TOLERANCE: Duration = Duration::from_millis(5);

impl Expectation {
    /// The longest median of reads that left the region, given the median before the fault.
    pub(crate) fn median_max(&self, before: Duration) -> Duration {
        before * 2 + self.median_tolerance.map_or(MEDIAN_TOLERANCE, |tolerance| tolerance.0)
    }

    /// Fails if the expectation can never be checked on a fault of this duration.
    pub(super) fn check(&self, duration: DurationRange) -> Result<(), InvalidScenario> {
        for (name, within) in
            [("left-within", self.left_within), ("writes-left-within", self.writes_left_within)]
        {
            if let Some(within) = within
                && within.0 >= duration.from
            {
                return Err(InvalidScenario::new(format!(
                    "'{name}' is {within}, and the fault may be over by then; make 'for' longer"
                )));
            }
        }
        if self.reads_stay && self.left_within.is_some() {
            return Err(InvalidScenario::new("'reads-stay' and 'left-within' contradict each other"));
        }
        Ok(())
    }
}
