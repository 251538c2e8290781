//! Whose provisioned throughput a partition uses, and how much of it was used.
//!
//! A container's own throughput is divided evenly among its partitions. A container without throughput of its
//! own shares its database's with the others of that kind: in as many token buckets as that throughput
//! implies partitions. Both are looked up when they are needed, so changing the throughput or the partitions
//! needs no notification.

use std::sync::Arc;
use std::time::Duration;

use protocol::throughput::Throughput;

use super::Account;
use crate::catalog::{CatalogSnapshot, ContainerEntry};
use crate::charge::throughput;
use crate::charge::{PartitionUsage, SharedTokenBuckets, TokenBuckets};
use crate::regions::RegionId;
use crate::store::Partition;

/// The throughput that the partitions of a container use.
pub struct ThroughputSource {
    /// The provisioned throughput, manual or autoscale.
    pub throughput: Throughput,
    /// Request units per second of one partition, or of one shared token bucket.
    pub rate: f64,
    shared: Option<(Arc<SharedTokenBuckets>, usize)>,
}

/// The token buckets that a partition's requests are charged to.
pub enum TokenBucketsRef<'a> {
    /// The buckets of the partition itself.
    Own(&'a TokenBuckets),
    /// Buckets shared with other containers of the database.
    Shared(Arc<TokenBuckets>),
}

impl std::ops::Deref for TokenBucketsRef<'_> {
    type Target = TokenBuckets;

    fn deref(&self) -> &TokenBuckets {
        match self {
            TokenBucketsRef::Own(budgets) => budgets,
            TokenBucketsRef::Shared(budgets) => budgets,
        }
    }
}

impl ThroughputSource {
    /// The throughput that `container` uses; none once it is deleted.
    pub fn of(account: &Account, container: &ContainerEntry) -> Option<ThroughputSource> {
        ThroughputSource::in_snapshot(&account.catalog.snapshot(), account, container)
    }

    fn in_snapshot(
        snapshot: &CatalogSnapshot,
        account: &Account,
        container: &ContainerEntry,
    ) -> Option<ThroughputSource> {
        if let Some(offer) = container.offer {
            let throughput = snapshot.offer(offer)?.throughput.clone();
            let rate = f64::from(throughput.max()) / container.store.partitions().len() as f64;
            return Some(ThroughputSource { throughput, rate, shared: None });
        }
        let database = snapshot.database_by_rid(container.rid.database)?;
        let throughput = snapshot.offer(database.offer?)?.throughput.clone();
        let shared = throughput::shared_partition_count(account.partitions, &throughput);
        let rate = f64::from(throughput.max()) / shared as f64;
        Some(ThroughputSource { throughput, rate, shared: Some((Arc::clone(&database.pools), shared)) })
    }

    /// The token buckets that requests to one of the container's partitions are charged to.
    pub fn token_buckets<'a>(
        &self,
        container: &ContainerEntry,
        partition: &'a Partition,
    ) -> TokenBucketsRef<'a> {
        let Some((shared, count)) = &self.shared else {
            return TokenBucketsRef::Own(&partition.throughput.token_buckets);
        };
        let partitions = container.store.partitions();
        let position = partitions.iter().position(|other| other.identity.id == partition.identity.id);
        TokenBucketsRef::Shared(shared.of(position.unwrap_or(0), partitions.len(), *count))
    }
}

/// The request units that the partitions of one container used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContainerUsage {
    /// The name of its database.
    pub database: String,
    /// The name of the container.
    pub container: String,
    /// The provisioned request units per second, at most.
    pub throughput: u32,
    /// The request units per second that apply now: where autoscale scales, what the busiest partition of
    /// this hour needs, and a tenth of the maximum at least.
    pub scaled_throughput: u32,
    /// Usage of each partition in each region that has used it, in EPK order.
    pub partitions: Vec<(u32, RegionId, PartitionUsage)>,
}

/// The usage of every container at this uptime.
pub fn usage(account: &Account, uptime: Duration) -> Vec<ContainerUsage> {
    let snapshot = account.catalog.snapshot();
    let mut all = Vec::new();
    for database in snapshot.databases_after(None) {
        for container in database.containers_after(None) {
            let Some(source) = ThroughputSource::in_snapshot(&snapshot, account, container) else { continue };
            let partitions: Vec<_> = container
                .store
                .partitions()
                .iter()
                .flat_map(|partition| {
                    let usages = partition.throughput.usage_by_region(source.rate, uptime);
                    usages.map(|(region, usage)| (partition.identity.id, region, usage)).collect::<Vec<_>>()
                })
                .collect();
            let busiest = partitions.iter().map(|(_, _, usage)| usage.hour_peak).fold(0.0, f64::max);
            all.push(ContainerUsage {
                database: database.id.to_string(),
                container: container.id.to_string(),
                throughput: source.throughput.max(),
                scaled_throughput: scaled(&source.throughput, busiest / source.rate),
                partitions,
            });
        }
    }
    all
}

/// What autoscale scales a throughput to while its busiest partition uses this share of its part. Pure.
fn scaled(throughput: &Throughput, busiest: f64) -> u32 {
    let max = throughput.max();
    match throughput {
        Throughput::Manual(_) => max,
        Throughput::Autoscale { .. } => {
            let used = (f64::from(max) * busiest).ceil();
            // Clamped between two values of 32 bits, so the cast loses nothing.
            used.clamp(f64::from(throughput.offer_throughput()), f64::from(max)) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autoscale_follows_its_busiest_partition_between_a_tenth_and_its_maximum() {
        let autoscale = Throughput::Autoscale { max: 5_000, increment_percent: None };
        for (busiest, expected) in [(0.0, 500), (0.05, 500), (0.3, 1_500), (1.0, 5_000), (3.0, 5_000)] {
            assert_eq!(scaled(&autoscale, busiest), expected, "{busiest}");
        }
        assert_eq!(scaled(&Throughput::Manual(400), 0.5), 400);
    }
}
