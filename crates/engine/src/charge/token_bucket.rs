//! How much a physical partition may spend. Pure: time is an argument.
//!
//! Two conditions, and both must hold. Over time no more is spent than the throughput provides: what
//! is not spent is saved, for a second, or for five minutes where the throughput is low enough to
//! burst. And at any time no more is spent than a partition can do, or, where it may not burst, than
//! was provisioned. An operation is let in while nothing is owed and pays afterwards, whatever it
//! cost: one expensive query can put a partition into debt for seconds, as it does in the service.
//!
//! Whoever is not let in is told to come back when the debt is paid. If many are told the same, they
//! come back at the same time, and all but one are told so again, until their patience ends. So each
//! gets a time of its own: after those who were told before, as far as a second reaches.

use std::time::Duration;

/// What a partition below [`BURST_RATE`] saves, at most.
///
/// So it is in the service: five minutes of unused throughput are kept and can be spent at 3,000 RU/s
/// by physical partitions that have less than that, manual or autoscale (by its maximum), of
/// containers and shared databases alike.
/// <https://learn.microsoft.com/azure/cosmos-db/burst-capacity>
const BURST_SAVED: Duration = Duration::from_secs(300);
/// How fast savings can be spent, in request units per second.
const BURST_RATE: f64 = 3_000.0;
/// What any partition saves: the rest of the second.
const SAVED: Duration = Duration::from_secs(1);
/// Part of a second's throughput that requests of low priority leave to the others.
const RESERVE: f64 = 0.2;
/// How much later than the debt is paid somebody is told to come back, at most. Clients that do not
/// wait must not keep those away who do.
const PROMISED_MAX: Duration = Duration::from_secs(1);
/// How much the newest operation counts for what is typical.
const TYPICAL_WEIGHT: f64 = 0.125;
/// Less than this is no debt: sums of fractions are not exact.
const PRECISION: f64 = 1e-6;

/// How much a request matters when there is not enough for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// What requests have that do not say.
    #[default]
    High,
    /// Throttled first: let in only while some of the second's throughput is left.
    Low,
}

/// What one partition has left to spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TokenBucket {
    /// Request units per second.
    rate: f64,
    /// What is saved up; negative: owed.
    saved: f64,
    /// What may be spent right now, savings permitting; negative: spent ahead.
    ready: f64,
    /// What those will cost who were told to come back.
    promised: f64,
    /// What operations cost lately.
    typical: f64,
    /// When that was so.
    at: Duration,
}

impl TokenBucket {
    /// A partition that nothing was spent of in the second before `now`.
    pub(super) fn new(rate: f64, now: Duration) -> TokenBucket {
        let saved = rate * SAVED.as_secs_f64();
        TokenBucket { rate, saved, ready: peak(rate), promised: 0.0, typical: 0.0, at: now }
    }

    /// Lets an operation in, or says when to come back.
    pub(super) fn admit(&mut self, rate: f64, priority: Priority, now: Duration) -> Result<(), Duration> {
        self.settle(rate, now);
        let reserve = match priority {
            Priority::High => 0.0,
            Priority::Low => RESERVE,
        };
        let peak = peak(rate);
        // In seconds of throughput.
        let lacking = (reserve - self.saved / rate).max(reserve - self.ready / peak);
        if lacking <= PRECISION / peak {
            return Ok(());
        }
        let wait = lacking + self.promised / rate;
        self.promised = (self.promised + self.typical).min(rate * PROMISED_MAX.as_secs_f64());
        // Headers say milliseconds: rounded up, so that whoever waits that long is let in.
        Err(Duration::from_millis((wait * 1_000.0).ceil().max(1.0) as u64))
    }

    /// Takes what an operation cost.
    pub(super) fn charge(&mut self, rate: f64, units: f64, now: Duration) {
        self.settle(rate, now);
        self.saved -= units;
        self.ready -= units;
        self.typical += (units - self.typical) * TYPICAL_WEIGHT;
    }

    /// Adds what time has brought, and takes on another rate.
    fn settle(&mut self, rate: f64, now: Duration) {
        let elapsed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.saved += self.rate * elapsed;
        self.promised = (self.promised - self.rate * elapsed).max(0.0);
        self.ready += peak(self.rate) * elapsed;
        self.rate = rate;
        self.saved = self.saved.min(rate * saved_for(rate).as_secs_f64());
        self.ready = self.ready.min(peak(rate));
        self.promised = self.promised.min(rate * PROMISED_MAX.as_secs_f64());
    }
}

/// The fastest a partition of this throughput can be used.
fn peak(rate: f64) -> f64 {
    rate.max(BURST_RATE)
}

/// How long unspent throughput is kept.
fn saved_for(rate: f64) -> Duration {
    if rate < BURST_RATE { BURST_SAVED } else { SAVED }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// What is let in when operations of `units` follow each other without a pause.
    fn spent_at_once(bucket: &mut TokenBucket, units: f64, now: Duration) -> f64 {
        exhaust(bucket, units, now).0
    }

    /// The same, and what the first one is told that is not let in.
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
    fn a_second_of_throughput_and_then_what_time_brings() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        // Let in while nothing is owed: the last one is let in on the last unit.
        let (spent, wait) = exhaust(&mut bucket, 10.0, at(0.0));
        assert_eq!((spent, wait), (410.0, Duration::from_millis(25)), "10 RU at 400 RU/s");
        assert!(bucket.admit(400.0, Priority::High, at(0.024)).is_err());
        assert!(bucket.admit(400.0, Priority::High, at(0.025)).is_ok());
        assert_eq!(spent_at_once(&mut bucket, 10.0, at(1.025)), 410.0);
    }

    /// Many clients at once, each waiting as told and giving up after nine tries, as SDKs do.
    #[test]
    fn a_crowd_that_waits_as_told_is_served_within_the_patience_of_its_clients() {
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
    fn who_does_not_wait_keeps_others_away_for_a_second_at_most() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        spent_at_once(&mut bucket, 10.0, at(0.0));
        for _ in 0..10_000 {
            assert!(bucket.admit(400.0, Priority::High, at(0.0)).unwrap_err() <= at(1.025));
        }
        assert!(bucket.admit(400.0, Priority::High, at(0.025)).is_ok());
    }

    #[test]
    fn an_expensive_operation_is_owed_for_as_long_as_it_takes() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        bucket.charge(400.0, 4_400.0, at(0.0));
        assert_eq!(bucket.admit(400.0, Priority::High, at(0.0)), Err(at(10.0)));
        assert_eq!(bucket.admit(400.0, Priority::High, at(9.0)), Err(at(1.0)));
        assert_eq!(bucket.admit(400.0, Priority::High, at(10.0)), Ok(()));
    }

    /// The service's own example: 100 RU/s and five idle minutes make 30,000 RU, spent in ten seconds.
    #[test]
    fn five_idle_minutes_can_be_spent_at_three_thousand_a_second() {
        let mut bucket = TokenBucket::new(100.0, at(0.0));
        let (mut spent, start) = (0.0, 1_000.0);
        for step in 0..2_000 {
            spent += spent_at_once(&mut bucket, 1.0, at(start + f64::from(step) / 100.0));
            if step == 100 {
                assert!((5_900.0..6_100.0).contains(&spent), "a second's worth, and a second: {spent}");
            }
        }
        // Twenty seconds have brought some more.
        assert!((31_900.0..32_100.0).contains(&spent), "{spent}");
    }

    #[test]
    fn nothing_is_saved_beyond_a_second_where_bursts_do_not_apply() {
        for rate in [3_000.0, 10_000.0] {
            let mut bucket = TokenBucket::new(rate, at(0.0));
            assert_eq!(spent_at_once(&mut bucket, 1.0, at(1_000.0)), rate + 1.0);
        }
    }

    #[test]
    fn low_priority_leaves_the_last_fifth_to_others() {
        let mut bucket = TokenBucket::new(5_000.0, at(0.0));
        bucket.charge(5_000.0, 3_999.0, at(0.0));
        assert_eq!(bucket.admit(5_000.0, Priority::Low, at(0.0)), Ok(()));
        bucket.charge(5_000.0, 501.0, at(0.0));
        assert_eq!(bucket.admit(5_000.0, Priority::Low, at(0.0)), Err(at(0.1)));
        assert_eq!(bucket.admit(5_000.0, Priority::High, at(0.0)), Ok(()));
        assert_eq!(bucket.admit(5_000.0, Priority::Low, at(0.1)), Ok(()));
    }

    #[test]
    fn another_throughput_applies_at_once() {
        let mut bucket = TokenBucket::new(400.0, at(0.0));
        bucket.charge(400.0, 4_400.0, at(0.0));
        let mut raised = bucket;
        assert_eq!(raised.admit(4_000.0, Priority::High, at(0.0)), Err(at(1.0)));
        assert_eq!(bucket.admit(200.0, Priority::High, at(0.0)), Err(at(20.0)));
        let mut idle = TokenBucket::new(2_000.0, at(0.0));
        assert_eq!(idle.admit(5_000.0, Priority::High, at(1_000.0)), Ok(()));
        assert_eq!(
            spent_at_once(&mut idle, 1.0, at(1_000.0)),
            5_001.0,
            "savings do not outlive the right to them"
        );
    }

    #[test]
    fn a_clock_that_seems_to_go_back_brings_nothing_twice() {
        let mut bucket = TokenBucket::new(5_000.0, at(10.0));
        bucket.charge(5_000.0, 10_000.0, at(10.0));
        assert_eq!(bucket.admit(5_000.0, Priority::High, at(10.0)), Err(at(1.0)));
        assert!(bucket.admit(5_000.0, Priority::High, at(9.0)).is_err());
        assert!(bucket.admit(5_000.0, Priority::High, at(10.9)).is_err());
        assert!(bucket.admit(5_000.0, Priority::High, at(11.0)).is_ok());
    }

    proptest! {
        /// However requests arrive: over any stretch of time no more is spent than was saved before,
        /// what the time brought, and the one operation that was let in on the last unit.
        #[test]
        fn no_window_sees_more_than_savings_and_throughput(
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
                    let sustained = rate * saved_for(rate).as_secs_f64() + rate * time;
                    let fastest = peak(rate) * (1.0 + time);
                    prop_assert!(sum <= sustained.min(fastest) + largest + 0.001, "{sum} in {time} s at {rate}");
                }
            }
        }

        /// Whoever waits as long as was said is let in, if nobody else came in between.
        #[test]
        fn waiting_as_told_is_enough(
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
