//! Counts the request units that a partition used.
//!
//! Counting is one addition. The first count of a new second also totals the second before, from which rates
//! and peaks are taken.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use std::time::Duration;

/// Counted per request unit: charges have two decimals, and some less.
const PARTS_PER_UNIT: f64 = 1_000.0;
const HOUR_SECONDS: u64 = 3_600;

/// The request units that one physical partition used in one region.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PartitionUsage {
    /// Request units since the partition was created.
    pub consumed: f64,
    /// The number of requests that were throttled with 429.
    pub throttled: u64,
    /// Request units in the last whole second.
    pub last_second: f64,
    /// The most request units in any one second.
    pub peak: f64,
    /// The most in one second of the current hour: what autoscale scales to.
    pub hour_peak: f64,
    /// `last_second` as a share of the throughput, 0 to 1.
    pub normalized_utilisation: f64,
}

/// The usage counters of one partition in one region.
#[derive(Debug, Default)]
pub(super) struct UsageCounter {
    consumed: AtomicU64,
    throttled: AtomicU64,
    /// The second that is being counted.
    second: AtomicU64,
    second_totals: Mutex<SecondTotals>,
}

/// Totals of the seconds that are over.
#[derive(Clone, Copy, Debug, Default)]
struct SecondTotals {
    /// `consumed` when the second began.
    before: u64,
    /// The last second in which something was spent, and how much.
    last: (u64, u64),
    peak: u64,
    /// The hour that `hour_peak` is of.
    hour: u64,
    hour_peak: u64,
}

impl UsageCounter {
    /// Counts `units`, used at this uptime.
    pub(super) fn count(&self, units: f64, uptime: Duration) {
        self.roll_second(uptime.as_secs());
        // Relaxed here and below: each counter stands for itself, and a unit that is counted around the turn
        // of a second may belong to either.
        self.consumed.fetch_add((units * PARTS_PER_UNIT).round() as u64, Ordering::Relaxed);
    }

    /// Counts one request that was throttled with 429.
    pub(super) fn count_throttled(&self) {
        self.throttled.fetch_add(1, Ordering::Relaxed);
    }

    /// What has been counted, where `rate` is the throughput per second.
    pub(super) fn usage(&self, rate: f64, uptime: Duration) -> PartitionUsage {
        let second = uptime.as_secs();
        self.roll_second(second);
        let second_totals = *self.second_totals.lock();
        let units = |parts: u64| parts as f64 / PARTS_PER_UNIT;
        let last_second = if second_totals.last.0 + 1 == second { units(second_totals.last.1) } else { 0.0 };
        let this_hour = second_totals.hour == second / HOUR_SECONDS;
        PartitionUsage {
            consumed: units(self.consumed.load(Ordering::Relaxed)),
            throttled: self.throttled.load(Ordering::Relaxed),
            last_second,
            peak: units(second_totals.peak),
            hour_peak: if this_hour { units(second_totals.hour_peak) } else { 0.0 },
            normalized_utilisation: if rate > 0.0 { (last_second / rate).min(1.0) } else { 0.0 },
        }
    }

    /// Totals the earlier second, if that has not been done.
    fn roll_second(&self, second: u64) {
        if self.second.load(Ordering::Relaxed) >= second {
            return;
        }
        let mut second_totals = self.second_totals.lock();
        // Read again under the lock, which orders it: another thread may have totalled the second meanwhile.
        let open = self.second.load(Ordering::Relaxed);
        if open >= second {
            return;
        }
        let consumed = self.consumed.load(Ordering::Relaxed);
        let spent = consumed - second_totals.before;
        let hour = open / HOUR_SECONDS;
        let hour_peak = if second_totals.hour == hour { second_totals.hour_peak } else { 0 };
        *second_totals = SecondTotals {
            before: consumed,
            last: (open, spent),
            peak: second_totals.peak.max(spent),
            hour,
            hour_peak: hour_peak.max(spent),
        };
        self.second.store(second, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_second_is_totalled_when_it_is_over() {
        let counter = UsageCounter::default();
        counter.count(10.0, at(5.1));
        counter.count(2.5, at(5.9));
        let during = counter.usage(100.0, at(5.95));
        assert_eq!((during.consumed, during.last_second, during.peak), (12.5, 0.0, 0.0));
        let after = counter.usage(100.0, at(6.5));
        assert_eq!((after.last_second, after.peak, after.normalized_utilisation), (12.5, 12.5, 0.125));
        counter.count(500.0, at(6.6));
        counter.count_throttled();
        let next = counter.usage(100.0, at(7.0));
        assert_eq!((next.last_second, next.peak, next.normalized_utilisation), (500.0, 500.0, 1.0));
        assert_eq!((next.consumed, next.throttled), (512.5, 1));
        let idle = counter.usage(100.0, at(9.0));
        assert_eq!((idle.last_second, idle.peak, idle.normalized_utilisation), (0.0, 500.0, 0.0));
    }

    #[test]
    fn an_hour_s_peak_does_not_carry_over() {
        let counter = UsageCounter::default();
        counter.count(700.0, at(10.0));
        assert_eq!(counter.usage(1.0, at(20.0)).hour_peak, 700.0);
        assert_eq!(counter.usage(1.0, at(3_700.0)).hour_peak, 0.0);
        counter.count(30.0, at(3_700.0));
        let usage = counter.usage(1.0, at(3_800.0));
        assert_eq!((usage.hour_peak, usage.peak), (30.0, 700.0));
    }

    #[test]
    fn counts_from_many_threads_add_up() {
        let counter = UsageCounter::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|n| counter.count(1.5, at(f64::from(n) / 100.0))));
            }
        });
        assert_eq!(counter.usage(1.0, at(11.0)).consumed, 6_000.0);
    }
}
