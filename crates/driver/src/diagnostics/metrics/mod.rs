//! Metrics of all operations of a driver: by container, region and partition range.
//!
//! Counting costs a look-up and a few atomic additions per operation; nothing is formatted until a
//! [`MetricsSnapshot`] is taken. The number of series is bounded: operations beyond it are
//! counted in one overflow series. The most expensive partition keys are estimated in bounded memory
//! ([`hot_keys`]).

pub mod histogram;
pub mod hot_keys;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use protocol::partition_range::RangeId;

use self::histogram::Histogram;
use self::hot_keys::{HotKey, HotKeys};
use super::Diagnostics;
use crate::operation::ContainerName;
use crate::routing::{BreakerState, PartitionRegion, PartitionState, Region};

/// Series at most; beyond it operations are counted together.
pub const SERIES_MAX: usize = 4096;

/// The container, region and partition range of a series.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SeriesKey {
    /// The container; none for the account and what is above containers.
    pub container: Option<ContainerName>,
    /// The region of the last attempt.
    pub region: Region,
    /// The physical partition, when it was known.
    pub range: Option<RangeId>,
}

/// The state of a partition's circuit breaker in a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BreakerGauge {
    /// The breaker is closed.
    #[default]
    Closed,
    /// The breaker is open.
    Open,
    /// The breaker lets requests through on trial.
    HalfOpen,
}

/// The metrics of a driver.
#[derive(Debug, Default)]
pub struct Metrics {
    series: RwLock<HashMap<SeriesKey, Arc<Series>, foldhash::fast::RandomState>>,
    overflow: Arc<Series>,
    hot_keys: Mutex<HotKeys>,
}

/// The counts of one series.
#[derive(Debug, Default)]
struct Series {
    operations: AtomicU64,
    failures: AtomicU64,
    /// In hundredths: the service charges no finer.
    charge: AtomicU64,
    throttled: AtomicU64,
    hedges: AtomicU64,
    failovers: AtomicU64,
    latency: Histogram,
}

/// The counts of one series at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct SeriesSnapshot {
    /// Operations that ended, failed ones included.
    pub operations: u64,
    /// Operations that ended with an error.
    pub failures: u64,
    /// Request units of all attempts.
    pub charge: f64,
    /// Responses with status 429.
    pub throttled: u64,
    /// Second attempts beside a slow one.
    pub hedges: u64,
    /// Attempts in another region than the one before.
    pub failovers: u64,
    /// The state of the partition's circuit breaker in the region.
    pub breaker: BreakerGauge,
    /// Half of the operations took no longer.
    pub latency_p50: Duration,
    /// All but one in a hundred took no longer.
    pub latency_p99: Duration,
}

/// A snapshot of the metrics of a driver.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// Each series and its counts.
    pub series: Vec<(SeriesKey, SeriesSnapshot)>,
    /// The operations beyond the last series.
    pub overflow: SeriesSnapshot,
    /// The logical keys that cost most, most first.
    pub hot_keys: Vec<HotKey>,
}

impl Metrics {
    /// Metrics without any series.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// Counts an operation that has ended.
    pub fn record(&self, key: &SeriesKey, diagnostics: &Diagnostics, failed: bool) {
        let totals = diagnostics.totals();
        let series = self.series(key);
        let add = |counter: &AtomicU64, by: u64| {
            if by > 0 {
                counter.fetch_add(by, Ordering::Relaxed);
            }
        };
        add(&series.operations, 1);
        add(&series.failures, u64::from(failed));
        add(&series.charge, hundredths(totals.charge));
        add(&series.throttled, totals.throttled.into());
        add(&series.hedges, totals.hedges.into());
        add(&series.failovers, totals.failovers.into());
        series.latency.record(diagnostics.elapsed());
    }

    /// Adds the charge of an operation to its partition key. Skipped when another thread does the same: a hot
    /// key is counted often enough.
    pub fn record_key(&self, container: &ContainerName, key: &str, charge: f64) {
        if let Ok(mut keys) = self.hot_keys.try_lock() {
            keys.record(container, key, hundredths(charge));
        }
    }

    /// A snapshot of all series and the state of the breakers.
    pub fn snapshot(&self, partitions: &PartitionState) -> MetricsSnapshot {
        let series = crate::sync::read(&self.series);
        let mut all: HashMap<SeriesKey, SeriesSnapshot> =
            series.iter().map(|(key, series)| (key.clone(), series.snapshot())).collect();
        drop(series);
        for (PartitionRegion { partition, region, .. }, breaker) in partitions.breakers() {
            let state = match breaker.state {
                BreakerState::Closed => continue,
                BreakerState::Open { .. } => BreakerGauge::Open,
                BreakerState::HalfOpen => BreakerGauge::HalfOpen,
            };
            let key = SeriesKey {
                container: Some(partition.container.name.clone()),
                region: region.clone(),
                range: Some(partition.range),
            };
            // Of the breakers of reads and of writes, the one that is open counts.
            let series = all.entry(key).or_default();
            if series.breaker != BreakerGauge::Open {
                series.breaker = state;
            }
        }
        MetricsSnapshot {
            series: all.into_iter().collect(),
            overflow: self.overflow.snapshot(),
            hot_keys: crate::sync::lock(&self.hot_keys).hottest(),
        }
    }

    fn series(&self, key: &SeriesKey) -> Arc<Series> {
        if let Some(series) = crate::sync::read(&self.series).get(key) {
            return Arc::clone(series);
        }
        let mut all = crate::sync::write(&self.series);
        match all.get(key) {
            Some(series) => Arc::clone(series),
            None if all.len() >= SERIES_MAX => Arc::clone(&self.overflow),
            None => Arc::clone(all.entry(key.clone()).or_default()),
        }
    }
}

impl Series {
    fn snapshot(&self) -> SeriesSnapshot {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        SeriesSnapshot {
            operations: count(&self.operations),
            failures: count(&self.failures),
            charge: count(&self.charge) as f64 / 100.0,
            throttled: count(&self.throttled),
            hedges: count(&self.hedges),
            failovers: count(&self.failovers),
            breaker: BreakerGauge::Closed,
            latency_p50: self.latency.quantile(0.50).unwrap_or_default(),
            latency_p99: self.latency.quantile(0.99).unwrap_or_default(),
        }
    }
}

fn hundredths(charge: f64) -> u64 {
    // A charge is small and positive; what is not counts as nothing.
    (charge * 100.0).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::clock::Clock;
    use crate::diagnostics::Recorder;
    use crate::operation::Access;
    use crate::options::CircuitBreakerConfig;
    use crate::routing::{ContainerIdentity, PartitionId};

    fn with_open_breaker(region: &str, range: u32, now: Instant) -> PartitionState {
        let container = ContainerIdentity { name: ContainerName::new("d", "c"), rid: "rid".to_owned() };
        let partition = PartitionId { container: Arc::new(container), range: RangeId(range) };
        let key = PartitionRegion { partition, region: Region::new(region), access: Access::Read };
        PartitionState::new(CircuitBreakerConfig::default()).trip(&key, now)
    }

    fn key(region: &str, range: u32) -> SeriesKey {
        SeriesKey {
            container: Some(ContainerName::new("d", "c")),
            region: Region::new(region),
            range: Some(RangeId(range)),
        }
    }

    fn took(milliseconds: u64) -> Diagnostics {
        let start = Clock::machine().now();
        Recorder::new("read item", start).finish(start + Duration::from_millis(milliseconds))
    }

    #[test]
    fn operations_are_counted_where_they_happened() {
        let metrics = Metrics::new();
        for _ in 0..99 {
            metrics.record(&key("West US", 0), &took(2), false);
        }
        metrics.record(&key("westus", 0), &took(500), true);
        metrics.record(&key("East US", 0), &took(1), false);
        let now = Clock::machine().now();
        let snapshot = metrics.snapshot(&with_open_breaker("East US", 0, now));
        let find = |wanted: &SeriesKey| {
            snapshot.series.iter().find(|(key, _)| key == wanted).map(|(_, series)| series.clone())
        };
        let west = find(&key("West US", 0)).expect("counted");
        assert_eq!((west.operations, west.failures, west.breaker), (100, 1, BreakerGauge::Closed));
        assert!(west.latency_p50 < Duration::from_millis(3), "{:?}", west.latency_p50);
        assert!(west.latency_p99 < Duration::from_millis(3), "{:?}", west.latency_p99);
        let east = find(&key("East US", 0)).expect("counted");
        assert_eq!((east.operations, east.breaker), (1, BreakerGauge::Open));
        assert_eq!(snapshot.overflow.operations, 0);
    }

    #[test]
    fn a_breaker_without_operations_is_shown_all_the_same() {
        let snapshot = Metrics::new().snapshot(&with_open_breaker("West US", 3, Clock::machine().now()));
        assert_eq!(snapshot.series.len(), 1);
        assert_eq!(
            (&snapshot.series[0].0, snapshot.series[0].1.breaker),
            (&key("West US", 3), BreakerGauge::Open)
        );
    }

    #[test]
    fn the_number_of_series_is_bounded_and_nothing_goes_uncounted() {
        let metrics = Metrics::new();
        let all = SERIES_MAX as u32 + 100;
        for range in 0..all {
            metrics.record(&key("West US", range), &took(1), false);
        }
        let snapshot = metrics.snapshot(&PartitionState::new(CircuitBreakerConfig::default()));
        assert_eq!(snapshot.series.len(), SERIES_MAX);
        assert_eq!(snapshot.overflow.operations, 100);
    }

    #[test]
    fn the_keys_that_cost_most_are_named() {
        let metrics = Metrics::new();
        let container = ContainerName::new("d", "c");
        for number in 0..1000 {
            metrics.record_key(&container, &format!("[\"{number}\"]"), 1.0);
            metrics.record_key(&container, "[\"hot\"]", 2.5);
        }
        let hottest = metrics.snapshot(&PartitionState::new(CircuitBreakerConfig::default())).hot_keys;
        assert_eq!(&*hottest[0].key, "[\"hot\"]");
        assert!(hottest[0].charge >= 2500.0);
    }
}
