//! A latency histogram whose buckets grow with the latency.
//!
//! It is no `hdrhistogram` because that needs a lock to record, on the path of every operation, and several times
//! the 2 KB that a series takes here, of which there may be 4096.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets per doubling: a quantile is at most an eighth too high.
const STEPS: u32 = 8;
/// Doublings covered, from 1 µs to more than an hour.
const DOUBLINGS: u32 = 32;
const BUCKETS: usize = (STEPS * DOUBLINGS) as usize;

/// Counts durations. Counting is one atomic addition; memory is fixed.
#[derive(Debug)]
pub struct Histogram {
    buckets: Box<[AtomicU64]>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Histogram {
    /// Records one duration in its bucket.
    pub fn record(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.buckets[bucket(micros)].fetch_add(1, Ordering::Relaxed);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }

    /// A duration that the given share of those counted does not exceed, rounded up to its bucket; none
    /// when nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return None;
        }
        let wanted = ((total as f64 * share).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        let at = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        at.map(|at| Duration::from_micros(upper_bound(at)))
    }
}

/// The bucket of a duration: doubling by doubling, each in equal steps.
fn bucket(micros: u64) -> usize {
    let value = micros.max(1);
    let doubling = value.ilog2();
    let step = if doubling >= 3 {
        (value >> (doubling - 3)) & 7
    } else {
        // Fewer whole numbers than steps: spread them.
        (value << (3 - doubling)) & 7
    };
    let at = (doubling * STEPS) as usize + step as usize;
    at.min(BUCKETS - 1)
}

/// The largest duration of a bucket.
fn upper_bound(bucket: usize) -> u64 {
    let (doubling, step) = (bucket as u32 / STEPS, bucket as u64 % u64::from(STEPS));
    let base = 1u64 << doubling;
    if doubling >= 3 { base + (step + 1) * (base >> 3) - 1 } else { base + ((step * base) >> 3) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quantile_is_never_too_low_and_at_most_an_eighth_too_high(
            mut micros in prop::collection::vec(1u64..10_000_000, 1..200),
            share in 0.01f64..1.0,
        ) {
            let histogram = Histogram::default();
            micros.iter().for_each(|micros| histogram.record(Duration::from_micros(*micros)));
            micros.sort_unstable();
            let rank = ((micros.len() as f64 * share).ceil() as usize).clamp(1, micros.len());
            let exact = micros[rank - 1];
            let found = histogram.quantile(share).expect("something was counted").as_micros() as u64;
            prop_assert!(found >= exact, "{found} < {exact}");
            prop_assert!(found <= exact + exact / 8 + 1, "{found} > {exact}");
            prop_assert_eq!(histogram.count(), micros.len() as u64);
        }
    }

    #[test]
    fn the_shortest_and_the_longest_have_a_bucket() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        histogram.record(Duration::ZERO);
        assert_eq!(histogram.quantile(0.5), Some(Duration::from_micros(1)));
        histogram.record(Duration::MAX);
        assert!(histogram.quantile(1.0).expect("counted") > Duration::from_secs(3600));
    }
}
