//! The token bucket of a physical partition. Pure: time is an argument.
//!
//! Two limits apply. Over time no more is used than the throughput provides: what is not used is saved, for a
//! second, or for five minutes where the throughput is low enough for burst capacity. And at any time no more
//! is used than a partition can do or, without burst capacity, than was provisioned. An operation is admitted
//! while nothing is owed and charged afterwards, whatever it cost: one expensive query can put a partition
//! into debt for seconds, as it does in the service.
//!
//! A throttled request gets a time to retry after: when the debt is paid. If many got the same time they
//! would retry together, and all but one would be throttled again until their retries run out. So each gets a
//! time of its own, after those that were throttled before, up to a second later.
#![warn(clippy::wildcard_enum_match_arm, reason = "a new case must be decided on")]

use std::time::Duration;

/// How much unused throughput a partition below [`BURST_RATE`] saves, at most.
///
/// As in the service: five minutes of unused throughput are saved and can be used at 3,000 RU/s by physical
/// partitions that have less than that, manual or autoscale (by its maximum), of containers and shared
/// databases alike. <https://learn.microsoft.com/azure/cosmos-db/burst-capacity>
const BURST_SAVED: Duration = Duration::from_secs(300);
/// How fast savings can be spent, in request units per second.
const BURST_RATE: f64 = 3_000.0;
/// How much unused throughput any partition saves: that of the current second.
const SAVED: Duration = Duration::from_secs(1);
/// The share of a second's throughput that requests of low priority leave to the others.
const RESERVE: f64 = 0.2;
/// How much later than the debt is paid a request is told to retry, at most. Clients that ignore the time
/// must not lock out those that respect it.
const PROMISED_MAX: Duration = Duration::from_secs(1);
/// The weight of the newest operation in the moving average of charges.
const TYPICAL_WEIGHT: f64 = 0.125;
/// Less than this is no debt: sums of fractions are not exact.
const PRECISION: f64 = 1e-6;

/// The priority of a request when there is not enough throughput for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// The priority of requests that do not state one.
    #[default]
    High,
    /// Throttled first: admitted only while some of the second's throughput is left.
    Low,
}

/// The tokens of one partition in one region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TokenBucket {
    /// Request units per second.
    rate: f64,
    /// Unused request units; negative: owed.
    savings: f64,
    /// Request units that may be used right now, savings permitting; negative: used ahead.
    burst_available: f64,
    /// What the requests will cost that were told to retry.
    promised: f64,
    /// The moving average of charges.
    typical_charge: f64,
    /// The uptime of these numbers.
    at: Duration,
}

impl TokenBucket {
    /// The bucket of a partition that was idle in the second before `now`.
    pub(super) fn new(rate: f64, now: Duration) -> TokenBucket {
        let savings = rate * SAVED.as_secs_f64();
        TokenBucket {
            rate,
            savings,
            burst_available: peak(rate),
            promised: 0.0,
            typical_charge: 0.0,
            at: now,
        }
    }

    /// Admits an operation, or returns how long to wait.
    pub(super) fn admit(&mut self, rate: f64, priority: Priority, now: Duration) -> Result<(), Duration> {
        self.refill(rate, now);
        let reserve = match priority {
            Priority::High => 0.0,
            Priority::Low => RESERVE,
        };
        let peak = peak(rate);
        // In seconds of throughput.
        let lacking = (reserve - self.savings / rate).max(reserve - self.burst_available / peak);
        if lacking <= PRECISION / peak {
            return Ok(());
        }
        let wait = lacking + self.promised / rate;
        self.promised = (self.promised + self.typical_charge).min(rate * PROMISED_MAX.as_secs_f64());
        // Headers state milliseconds: rounded up, so that a client that waits that long is admitted.
        Err(Duration::from_millis((wait * 1_000.0).ceil().max(1.0) as u64))
    }

    /// Takes the charge of an operation.
    pub(super) fn charge(&mut self, rate: f64, units: f64, now: Duration) {
        self.refill(rate, now);
        self.savings -= units;
        self.burst_available -= units;
        self.typical_charge += (units - self.typical_charge) * TYPICAL_WEIGHT;
    }

    /// Adds the tokens of the elapsed time, and applies a changed rate.
    fn refill(&mut self, rate: f64, now: Duration) {
        let elapsed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.savings += self.rate * elapsed;
        self.promised = (self.promised - self.rate * elapsed).max(0.0);
        self.burst_available += peak(self.rate) * elapsed;
        self.rate = rate;
        self.savings = self.savings.min(rate * savings_limit(rate).as_secs_f64());
        self.burst_available = self.burst_available.min(peak(rate));
        self.promised = self.promised.min(rate * PROMISED_MAX.as_secs_f64());
    }
}

/// The fastest a partition of this throughput can be used.
fn peak(rate: f64) -> f64 {
    rate.max(BURST_RATE)
}

/// For how long unused throughput is saved.
fn savings_limit(rate: f64) -> Duration {
    if rate < BURST_RATE { BURST_SAVED } else { SAVED }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// The units admitted when operations of `units` follow each other without a pause.
    fn used_at_once(bucket: &mut TokenBucket, units: f64, now: Duration) -> f64 {
        exhaust(bucket, units, now).0
    }

    /// The units admitted until the first operation is throttled, and the wait that it is told.
    fn exhaust(bucket: &mut TokenBucket, units: f64, now: Duration) -> (f64, Duration) {
        let mut spent = 0.0;
        loop {
            match bucket.admit(bucket.rate, Priority::High, now) {
                Ok(()) => bucket.charge(bucket.rate, units, now),
                Err(wait) => return (spent, wait),
            }
            spent += units;
        }
    }

    #[test]
    fn a_second_of_throughput_is_available_and_then_refills() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        // Let in while nothing is owed: the last one is let in on the last unit.
        let (spent, wait) = exhaust(&mut bucket, 10.0, at(0.0));
        assert_eq!((spent, wait), (410.0, Duration::from_millis(25)), "10 RU at 400 RU/s");
        assert!(bucket.admit(400.0, Priority::High, at(0.024)).is_err());
        assert!(bucket.admit(400.0, Priority::High, at(0.025)).is_ok());
        assert_eq!(used_at_once(&mut bucket, 10.0, at(1.025)), 410.0);
    }

    /// Many clients at once, each waiting as told and giving up after nine tries, as SDKs do.
    #[test]
    fn clients_that_honour_retry_after_are_served_within_nine_retries() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        let mut arrivals: Vec<(Duration, u32)> = vec![(at(0.0), 0); 300];
        let (mut served, mut last, mut most) = (0, Duration::ZERO, 0);
        while let Some(next) = (0..arrivals.len()).min_by_key(|at| arrivals[*at].0) {
            let (now, tries) = arrivals.swap_remove(next);
            match bucket.admit(400.0, Priority::High, now) {
                Ok(()) => {
                    bucket.charge(400.0, 6.0, now);
                    (served, last, most) = (served + 1, now, tries.max(most));
                }
                Err(wait) => arrivals.push((now + wait, tries + 1)),
            }
        }
        assert_eq!(served, 300);
        assert!(most <= 9, "{most} tries");
        // 1,800 RU, 400 of them at once.
        assert!(last < at(4.0), "and nothing was left unused: {last:?}");
    }

    #[test]
    fn clients_that_ignore_retry_after_delay_others_by_a_second_at_most() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        used_at_once(&mut bucket, 10.0, at(0.0));
        for _ in 0..10_000 {
            assert!(bucket.admit(400.0, Priority::High, at(0.0)).unwrap_err() <= at(1.025));
        }
        assert!(bucket.admit(400.0, Priority::High, at(0.025)).is_ok());
    }

    #[test]
    fn an_expensive_operation_is_paid_off_over_time() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        bucket.charge(400.0, 4_400.0, at(0.0));
        assert_eq!(bucket.admit(400.0, Priority::High, at(0.0)), Err(at(10.0)));
        assert_eq!(bucket.admit(400.0, Priority::High, at(9.0)), Err(at(1.0)));
        assert_eq!(bucket.admit(400.0, Priority::High, at(10.0)), Ok(()));
    }

    /// The service's own example: 100 RU/s and five idle minutes make 30,000 RU, spent in ten seconds.
    #[test]
    fn burst_capacity_of_five_idle_minutes_is_used_at_3000_rus() {
        let mut bucket = TokenBucket::new(100.0, at(0.0));
        let (mut spent, start) = (0.0, 1_000.0);
        for step in 0..2_000 {
            spent += used_at_once(&mut bucket, 1.0, at(start + f64::from(step) / 100.0));
            if step == 100 {
                assert!((5_900.0..6_100.0).contains(&spent), "a second's worth, and a second: {spent}");
            }
        }
        // Twenty seconds have brought some more.
        assert!((31_900.0..32_100.0).contains(&spent), "{spent}");
    }

    #[test]
    fn without_burst_capacity_one_second_is_saved() {
        for rate in [3_000.0, 10_000.0] {
            let mut bucket = TokenBucket::new(rate, at(0.0));
            assert_eq!(used_at_once(&mut bucket, 1.0, at(1_000.0)), rate + 1.0);
        }
    }

    #[test]
    fn low_priority_leaves_a_fifth_to_others() {
        let mut bucket = TokenBucket::new(5_000.0, at(0.0));
        bucket.charge(5_000.0, 3_999.0, at(0.0));
        assert_eq!(bucket.admit(5_000.0, Priority::Low, at(0.0)), Ok(()));
        bucket.charge(5_000.0, 501.0, at(0.0));
        assert_eq!(bucket.admit(5_000.0, Priority::Low, at(0.0)), Err(at(0.1)));
        assert_eq!(bucket.admit(5_000.0, Priority::High, at(0.0)), Ok(()));
        assert_eq!(bucket.admit(5_000.0, Priority::Low, at(0.1)), Ok(()));
    }

    #[test]
    fn a_changed_throughput_applies_at_once() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        bucket.charge(400.0, 4_400.0, at(0.0));
        let mut raised = bucket;
        assert_eq!(raised.admit(4_000.0, Priority::High, at(0.0)), Err(at(1.0)));
        assert_eq!(bucket.admit(200.0, Priority::High, at(0.0)), Err(at(20.0)));
        let mut idle = TokenBucket::new(2_000.0, at(0.0));
        assert_eq!(idle.admit(5_000.0, Priority::High, at(1_000.0)), Ok(()));
        assert_eq!(
            used_at_once(&mut idle, 1.0, at(1_000.0)),
            5_001.0,
            "savings do not outlive the right to them"
        );
    }

    #[test]
    fn a_clock_that_goes_back_refills_nothing_twice() {
        let mut bucket = TokenBucket::new(5_000.0, at(10.0));
        bucket.charge(5_000.0, 10_000.0, at(10.0));
        assert_eq!(bucket.admit(5_000.0, Priority::High, at(10.0)), Err(at(1.0)));
        assert!(bucket.admit(5_000.0, Priority::High, at(9.0)).is_err());
        assert!(bucket.admit(5_000.0, Priority::High, at(10.9)).is_err());
        assert!(bucket.admit(5_000.0, Priority::High, at(11.0)).is_ok());
    }

    proptest! {
        /// However requests arrive: over any interval no more is used than was saved before, what the time
        /// brought, and the one operation that was admitted on the last unit.
        #[test]
        fn no_interval_uses_more_than_savings_and_throughput(
            rate in prop_oneof![100.0..3_000.0, 3_000.0..10_000.0_f64],
            steps in prop::collection::vec((0_u64..40_000, 1.0..500.0_f64), 1..200),
        ) {
            let mut bucket = TokenBucket::new(rate, Duration::ZERO);
            let (mut now, mut spent) = (Duration::ZERO, Vec::new());
            for (pause_ms, units) in steps {
                // Mostly close together, sometimes after a long pause.
                now += Duration::from_millis(if pause_ms > 39_000 { pause_ms * 10 } else { pause_ms / 400 });
                if bucket.admit(rate, Priority::High, now).is_ok() {
                    bucket.charge(rate, units, now);
                    spent.push((now, units));
                }
            }
            for (first, (from, _)) in spent.iter().enumerate() {
                let (mut sum, mut largest) = (0.0, 0.0_f64);
                for (until, units) in &spent[first..] {
                    sum += units;
                    largest = largest.max(*units);
                    let time = (*until - *from).as_secs_f64();
                    let sustained = rate * savings_limit(rate).as_secs_f64() + rate * time;
                    let fastest = peak(rate) * (1.0 + time);
                    prop_assert!(sum <= sustained.min(fastest) + largest + 0.001, "{sum} in {time} s at {rate}");
                }
            }
        }

        /// A client that waits as long as it was told is admitted, if no other request came in between.
        #[test]
        fn a_client_that_honours_retry_after_is_admitted(
            rate in 10.0..20_000.0_f64,
            units in 0.01..50_000.0_f64,
            start_ms in 0_u64..1_000_000,
            low in any::<bool>(),
        ) {
            let priority = if low { Priority::Low } else { Priority::High };
            let now = Duration::from_millis(start_ms);
            let mut bucket = TokenBucket::new(rate, Duration::ZERO);
            bucket.charge(rate, units, now);
            if let Err(wait) = bucket.admit(rate, priority, now) {
                prop_assert!(bucket.admit(rate, priority, now + wait / 2).is_err() || wait <= Duration::from_millis(2));
                prop_assert_eq!(bucket.admit(rate, priority, now + wait), Ok(()));
            }
        }
    }
}
