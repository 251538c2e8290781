//! How long things took, in buckets.

use std::time::Duration;

/// Upper ends of the buckets, inclusive; what takes longer is in one more.
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

/// Counts by duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    buckets: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    /// Counts one.
    pub(crate) fn observe(&mut self, took: Duration) {
        self.buckets[BOUNDS.partition_point(|bound| *bound < took)] += 1;
        self.sum = self.sum.saturating_add(took);
    }

    /// Adds what another counted.
    pub(crate) fn add(&mut self, other: &Histogram) {
        self.buckets.iter_mut().zip(other.buckets).for_each(|(own, other)| *own += other);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// How long they took together.
    pub(crate) fn sum(&self) -> Duration {
        self.sum
    }

    /// How many took no longer than each bound.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut so_far = 0;
        BOUNDS.iter().zip(self.buckets).map(move |(bound, count)| {
            so_far += count;
            (*bound, so_far)
        })
    }

    /// The end of the bucket that the given share of them (0 to 1) is within; `None` when there were
    /// none, or when it is the last, which has no end.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * share).ceil().max(1.0) as u64;
        self.cumulative().find(|(_, so_far)| *so_far >= rank).map(|(bound, _)| bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_counted_in_the_bucket_that_ends_at_or_after_it() {
        let mut histogram = Histogram::default();
        for took in [0, 25, 26, 1_000, 1_001] {
            histogram.observe(Duration::from_micros(took));
        }
        histogram.observe(Duration::from_secs(60));
        let cumulative: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!(cumulative[..8], [2, 3, 3, 3, 3, 4, 5, 5]);
        assert_eq!((cumulative[BOUNDS.len() - 1], histogram.count()), (5, 6));
        assert_eq!(histogram.sum(), Duration::from_micros(60_002_052));
    }

    #[test]
    fn quantiles_are_the_end_of_their_bucket() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (0..99).for_each(|_| histogram.observe(Duration::from_micros(40)));
        histogram.observe(Duration::from_secs(60));
        assert_eq!(histogram.quantile(0.5), Some(Duration::from_micros(50)));
        assert_eq!(histogram.quantile(0.99), Some(Duration::from_micros(50)));
        assert_eq!(histogram.quantile(1.0), None, "beyond the last bound");
    }

    #[test]
    fn bounds_grow() {
        assert!(BOUNDS.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
