//! When to start the second attempt of a race: at the recent 99th percentile of the first one's region.

use std::time::Duration;

use crate::options::HedgingThreshold;

/// The threshold while too few latencies of the region are known.
const UNKNOWN: Duration = Duration::from_millis(500);

/// When to start the second attempt. `p99` is the first region's recent 99th percentile, if it is known.
pub(crate) fn threshold(setting: HedgingThreshold, p99: Option<Duration>) -> Duration {
    match setting {
        HedgingThreshold::Static(after) => after,
        HedgingThreshold::Dynamic { min, max } => p99.unwrap_or(UNKNOWN).clamp(min, max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_threshold_stays_between_its_gates() {
        let dynamic = HedgingThreshold::default();
        for (setting, p99, expected) in [
            (dynamic, Some(MS), 50 * MS),
            (dynamic, Some(200 * MS), 200 * MS),
            (dynamic, Some(60_000 * MS), 4000 * MS),
            (dynamic, None, 500 * MS),
            (HedgingThreshold::Dynamic { min: 50 * MS, max: 100 * MS }, None, 100 * MS),
            (HedgingThreshold::Static(70 * MS), Some(200 * MS), 70 * MS),
        ] {
            assert_eq!(threshold(setting, p99), expected);
        }
    }
}
