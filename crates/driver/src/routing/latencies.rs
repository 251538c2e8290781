//! How fast an endpoint has responded recently, by kind of operation.
//!
//! Latencies are counted in buckets a quarter of a power of two wide, over the last one or two windows of
//! time. A percentile stays known until there are enough latencies for a new one: during an outage there are none,
//! and forgetting would make every later operation wait longer before it is hedged. Recording is an atomic addition,
//! and the percentile is computed at most ten times a second, as every hedged read asks for it. It is no
//! `hdrhistogram` because that needs a lock to record, and every read records here.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::operation::OperationKind;

/// How long latencies count as recent: one to two of these.
const WINDOW: Duration = Duration::from_secs(15);
/// How long a percentile is valid once it is computed, at most.
const TICK: Duration = Duration::from_millis(100);
const TICKS_PER_WINDOW: u32 = (WINDOW.as_millis() / TICK.as_millis()) as u32;
/// Fewer samples than these say nothing about the 99th percentile.
const SAMPLES_MIN: u32 = 50;
/// Quarters of powers of two of a microsecond, up to half a minute.
const BUCKETS: usize = 100;

/// Recent latencies of one endpoint, by kind of operation.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    start: OnceLock<Instant>,
    kinds: [OnceLock<Box<Windows>>; OperationKind::ALL.len()],
}

#[derive(Debug)]
struct Windows {
    /// Which window is the current one, counted from the start.
    number: AtomicU32,
    /// The bucket of the last 99th percentile that was known, and one; 0 for none.
    last_p99: AtomicU32,
    /// The tick in which that was computed from enough latencies.
    computed_in: AtomicU32,
    current: [AtomicU32; BUCKETS],
    previous: [AtomicU32; BUCKETS],
}

impl Latencies {
    /// Records the latency of one operation.
    pub(crate) fn record(&self, kind: OperationKind, took: Duration, now: Instant) {
        let windows = self.kinds[kind as usize].get_or_init(Box::default);
        windows.turn(self.tick(now) / TICKS_PER_WINDOW);
        windows.current[bucket(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// The recent 99th percentile, or the last one that was known; none before enough is known.
    pub(crate) fn p99(&self, kind: OperationKind, now: Instant) -> Option<Duration> {
        let windows = self.kinds[kind as usize].get()?;
        let tick = self.tick(now);
        let last = windows.last_p99.load(Ordering::Relaxed).checked_sub(1).map(|bucket| bucket as usize);
        if last.is_some() && windows.computed_in.load(Ordering::Relaxed) == tick {
            return last.map(upper_bound);
        }
        windows.turn(tick / TICKS_PER_WINDOW);
        let Some(bucket) = windows.p99_bucket() else { return last.map(upper_bound) };
        windows.last_p99.store(bucket as u32 + 1, Ordering::Relaxed);
        windows.computed_in.store(tick, Ordering::Relaxed);
        Some(upper_bound(bucket))
    }

    /// The number of ticks since the start.
    fn tick(&self, now: Instant) -> u32 {
        let start = *self.start.get_or_init(|| now);
        let since = now.saturating_duration_since(start);
        // Not `as_millis`, whose 128 bits are divided in software.
        let per_second = 1000 / TICK.as_millis() as u64;
        let ticks = since.as_secs().saturating_mul(per_second)
            + u64::from(since.subsec_millis()) / TICK.as_millis() as u64;
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }
}

impl Default for Windows {
    fn default() -> Windows {
        Windows {
            number: AtomicU32::new(0),
            last_p99: AtomicU32::new(0),
            computed_in: AtomicU32::new(0),
            current: [const { AtomicU32::new(0) }; BUCKETS],
            previous: [const { AtomicU32::new(0) }; BUCKETS],
        }
    }
}

impl Windows {
    /// The bucket of the 99th percentile, if there are enough latencies.
    fn p99_bucket(&self) -> Option<usize> {
        let count = |index: usize| {
            self.current[index].load(Ordering::Relaxed) + self.previous[index].load(Ordering::Relaxed)
        };
        let total: u32 = (0..BUCKETS).map(count).sum();
        if total < SAMPLES_MIN {
            return None;
        }
        let mut above = total / 100;
        (0..BUCKETS).rev().find(|&index| {
            let count = count(index);
            let found = count > above;
            above = above.saturating_sub(count);
            found
        })
    }

    /// Moves on to a window, if it is a later one: one thread does it.
    fn turn(&self, window: u32) {
        let current = self.number.load(Ordering::Relaxed);
        if window <= current
            || self.number.compare_exchange(current, window, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        let adjacent = window == current + 1;
        for (current, previous) in self.current.iter().zip(&self.previous) {
            let count = current.swap(0, Ordering::Relaxed);
            previous.store(if adjacent { count } else { 0 }, Ordering::Relaxed);
        }
    }
}

/// The bucket of a latency: its power of two and the quarter within it.
fn bucket(took: Duration) -> usize {
    let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(4);
    let power = micros.ilog2();
    let quarter = (micros >> (power - 2)) & 3;
    ((power as usize) * 4 + quarter as usize).min(BUCKETS - 1)
}

/// The latency that is above everything in a bucket.
fn upper_bound(bucket: usize) -> Duration {
    let (power, quarter) = (bucket / 4, (bucket % 4) as u64);
    Duration::from_micros((5 + quarter) << power.saturating_sub(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_99th_percentile_is_above_99_of_100_and_not_far() {
        let now = Clock::machine().now();
        let latencies = Latencies::default();
        for millisecond in 1..=200 {
            latencies.record(OperationKind::Read, millisecond * MS, now);
        }
        let p99 = latencies.p99(OperationKind::Read, now).expect("enough samples");
        assert!(p99 >= 198 * MS && p99 <= 250 * MS, "{p99:?}");
        assert_eq!(latencies.p99(OperationKind::Create, now), None, "kinds are counted apart");
    }

    #[test]
    fn a_few_samples_say_nothing_and_a_percentile_outlives_an_outage() {
        let now = Clock::machine().now();
        let latencies = Latencies::default();
        let record = |count, latency, now| {
            (0..count).for_each(|_| latencies.record(OperationKind::Read, latency, now));
        };
        record(SAMPLES_MIN - 1, 10 * MS, now);
        assert_eq!(latencies.p99(OperationKind::Read, now), None);
        record(1, 10 * MS, now);
        let known = latencies.p99(OperationKind::Read, now).expect("enough samples");
        // Minutes without a response say nothing about how fast the region will be.
        for windows in [1, 2, 10, 1000] {
            let later = now + windows * WINDOW;
            assert_eq!(latencies.p99(OperationKind::Read, later), Some(known), "{windows} windows later");
        }
        let later = now + 1001 * WINDOW;
        record(SAMPLES_MIN, 100 * MS, later);
        assert!(latencies.p99(OperationKind::Read, later).expect("enough again") > 4 * known);
    }

    #[test]
    fn every_latency_is_below_the_bound_of_its_bucket() {
        for micros in (0..10_000).chain((10_000..40_000_000).step_by(9973)) {
            let took = Duration::from_micros(micros);
            let bucket = bucket(took);
            assert!(bucket == BUCKETS - 1 || took < upper_bound(bucket), "{took:?} in {bucket}");
            assert!(bucket < 12 || upper_bound(bucket) <= took.mul_f64(1.26), "{took:?} in {bucket}");
        }
    }
}
