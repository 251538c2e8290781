//! The token buckets and usage counters of a partition, one of each per region.
//!
//! A partition has a [`PartitionThroughput`]. Where the throughput is a database's, its containers use the
//! same [`SharedTokenBuckets`] instead of their partitions' own; usage is still counted per partition. The
//! rate is looked up when an operation arrives, never stored: a change of it, a split and a merge apply at
//! once.

use std::sync::Arc;
use std::time::Duration;

use super::token_bucket::{Priority, TokenBucket};
use super::usage_counter::{PartitionUsage, UsageCounter};
use crate::regions::{PerRegion, RegionId};
use parking_lot::{Mutex, RwLock};

/// The token buckets and usage counters of one physical partition.
#[derive(Debug, Default)]
pub struct PartitionThroughput {
    /// In force unless the throughput is the database's.
    pub token_buckets: TokenBuckets,
    usage_counters: PerRegion<UsageCounter>,
}

impl PartitionThroughput {
    /// Counts the charge of an operation.
    pub fn count(&self, region: RegionId, units: f64, uptime: Duration) {
        self.usage_counters.get_or_make(region, UsageCounter::default).count(units, uptime);
    }

    /// Counts an operation that was throttled with 429.
    pub fn count_throttled(&self, region: RegionId) {
        self.usage_counters.get_or_make(region, UsageCounter::default).count_throttled();
    }

    /// The usage in each region that served a request, where `rate` is the throughput per second.
    pub(crate) fn usage_by_region(
        &self,
        rate: f64,
        uptime: Duration,
    ) -> impl Iterator<Item = (RegionId, PartitionUsage)> {
        self.usage_counters.iter().map(move |(region, counter)| (region, counter.usage(rate, uptime)))
    }
}

/// One token bucket for each region.
#[derive(Debug, Default)]
pub struct TokenBuckets(PerRegion<Mutex<TokenBucket>>);

impl TokenBuckets {
    /// Admits an operation, or returns how long to wait.
    pub fn admit(
        &self,
        region: RegionId,
        rate: f64,
        priority: Priority,
        now: Duration,
    ) -> Result<(), Duration> {
        self.with(region, rate, now, |bucket| bucket.admit(rate, priority, now))
    }

    /// Takes the charge of an operation from the bucket.
    pub fn charge(&self, region: RegionId, rate: f64, units: f64, now: Duration) {
        self.with(region, rate, now, |bucket| bucket.charge(rate, units, now));
    }

    fn with<T>(
        &self,
        region: RegionId,
        rate: f64,
        now: Duration,
        work: impl FnOnce(&mut TokenBucket) -> T,
    ) -> T {
        let bucket = self.0.get_or_make(region, || Mutex::new(TokenBucket::new(rate, now)));
        // Held for some additions; a bucket is valid after each of them, so a panic cannot leave it broken.
        work(&mut bucket.lock())
    }
}

/// Token buckets that the containers of a database share: one set for each physical partition that its
/// throughput implies.
#[derive(Debug, Default)]
pub(crate) struct SharedTokenBuckets(RwLock<Vec<Arc<TokenBuckets>>>);

impl SharedTokenBuckets {
    /// The buckets, of `pools` sets, that the partition at `position` of `partitions` uses.
    pub(crate) fn of(&self, position: usize, partitions: usize, pools: usize) -> Arc<TokenBuckets> {
        let index = pool_index(position, partitions, pools);
        if let Some(budgets) = self.0.read().get(index) {
            return Arc::clone(budgets);
        }
        let mut all = self.0.write();
        while all.len() <= index {
            all.push(Arc::default());
        }
        Arc::clone(&all[index])
    }
}

/// Distributes partitions, in EPK order, evenly over the sets of buckets: neighbours share one.
fn pool_index(position: usize, partitions: usize, pools: usize) -> usize {
    (position * pools / partitions.max(1)).min(pools.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: RegionId = RegionId(0);
    const THERE: RegionId = RegionId(1);

    #[test]
    fn each_region_has_its_own_token_bucket_and_usage_counter() {
        let throughput = PartitionThroughput::default();
        let now = Duration::from_secs(1);
        throughput.token_buckets.charge(HERE, 400.0, 800.0, now);
        throughput.count(HERE, 800.0, now);
        assert!(throughput.token_buckets.admit(HERE, 400.0, Priority::High, now).is_err());
        assert!(throughput.token_buckets.admit(THERE, 400.0, Priority::High, now).is_ok());
        throughput.count_throttled(HERE);
        throughput.count(THERE, 1.0, now);
        let usages: Vec<_> = throughput.usage_by_region(400.0, Duration::from_secs(2)).collect();
        let [(HERE, here), (THERE, there)] = usages.as_slice() else { panic!("{usages:?}") };
        assert_eq!((here.consumed, here.throttled, here.normalized_utilisation), (800.0, 1, 1.0));
        assert_eq!((there.consumed, there.throttled), (1.0, 0));
    }

    #[test]
    fn partitions_are_spread_over_shared_buckets_in_order() {
        for (partitions, pools, expected) in [
            (1, 1, vec![0]),
            (4, 2, vec![0, 0, 1, 1]),
            (2, 4, vec![0, 2]),
            (3, 2, vec![0, 0, 1]),
            (3, 1, vec![0, 0, 0]),
        ] {
            let found: Vec<_> = (0..partitions).map(|at| pool_index(at, partitions, pools)).collect();
            assert_eq!(found, expected, "{partitions} over {pools}");
        }
    }

    #[test]
    fn partitions_at_the_same_position_share_a_bucket() {
        let pools = SharedTokenBuckets::default();
        assert!(Arc::ptr_eq(&pools.of(3, 4, 2), &pools.of(1, 2, 2)));
        assert!(!Arc::ptr_eq(&pools.of(0, 4, 2), &pools.of(1, 2, 2)));
    }
}
