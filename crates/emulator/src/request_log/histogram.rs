//! The latency histogram of the request log: counts of durations in fixed buckets.
//!
//! Written by hand: `/metrics` exposes exactly these buckets, each shard holds up to 2,000 of them (150 bytes
//! here, kilobytes each with hdrhistogram), and every point read records into two.

use std::time::Duration;

/// Inclusive upper bounds of the buckets; longer durations are in one more bucket.
pub(crate) const BOUNDS: [Duration; 17] = [
    Duration::from_micros(25),
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(10),
];

/// Counts of durations, in buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LatencyHistogram {
    buckets: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl LatencyHistogram {
    /// Adds one duration to the counts.
    pub(crate) fn record(&mut self, duration: Duration) {
        self.buckets[BOUNDS.partition_point(|bound| *bound < duration)] += 1;
        self.sum = self.sum.saturating_add(duration);
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &LatencyHistogram) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(own, other)| *own += other);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many durations were recorded.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of all durations.
    pub(crate) fn sum(&self) -> Duration {
        self.sum
    }

    /// For each bound, how many durations were no longer than it.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut so_far = 0;
        BOUNDS.iter().zip(self.buckets).map(move |(bound, count)| {
            so_far += count;
            (*bound, so_far)
        })
    }

    /// The upper bound of the bucket that contains the given quantile (0 to 1); `None` without any durations,
    /// or when it is the last bucket, which has no bound.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * quantile).ceil().max(1.0) as u64;
        self.cumulative().find(|(_, so_far)| *so_far >= rank).map(|(bound, _)| bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_bucket_that_ends_at_or_after_it() {
        let mut histogram = LatencyHistogram::default();
        for duration in [0, 25, 26, 1_000, 1_001] {
            histogram.record(Duration::from_micros(duration));
        }
        histogram.record(Duration::from_secs(60));
        let cumulative: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!(cumulative[..8], [2, 3, 3, 3, 3, 4, 5, 5]);
        assert_eq!((cumulative[BOUNDS.len() - 1], histogram.count()), (5, 6));
        assert_eq!(histogram.sum(), Duration::from_micros(60_002_052));
    }

    #[test]
    fn a_quantile_is_the_upper_bound_of_its_bucket() {
        let mut histogram = LatencyHistogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (0..99).for_each(|_| histogram.record(Duration::from_micros(40)));
        histogram.record(Duration::from_secs(60));
        assert_eq!(histogram.quantile(0.5), Some(Duration::from_micros(50)));
        assert_eq!(histogram.quantile(0.99), Some(Duration::from_micros(50)));
        assert_eq!(histogram.quantile(1.0), None, "beyond the last bound");
    }

    #[test]
    fn bounds_are_sorted() {
        assert!(BOUNDS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
