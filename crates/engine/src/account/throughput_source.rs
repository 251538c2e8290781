//! Whose throughput pays for a partition, and what became of it.
//!
//! A container pays for its partitions, each with an equal share. One without throughput of its own
//! spends from its database's, which all such containers compete for: in as many pools as the
//! database's throughput implies partitions. Both are looked up whenever they are needed, so whoever
//! changes throughput or partitions has nobody to tell.

use std::sync::Arc;
use std::time::Duration;

use protocol::throughput::Throughput;

use super::Account;
use crate::catalog::{CatalogSnapshot, ContainerEntry};
use crate::charge::throughput;
use crate::charge::{PartitionUsage, SharedTokenBuckets, TokenBuckets};
use crate::regions::RegionId;
use crate::store::Partition;

/// What pays for the partitions of a container.
pub struct ThroughputSource {
    pub throughput: Throughput,
    /// Request units per second of one partition, or of one pool.
    pub rate: f64,
    pools: Option<(Arc<SharedTokenBuckets>, usize)>,
}

/// What a partition spends from.
pub enum TokenBucketsRef<'a> {
    /// Its own budget.
    Own(&'a TokenBuckets),
    /// One that others spend from as well.
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
    /// What pays for `container`; nothing does once it is deleted.
    pub fn of(account: &Account, container: &ContainerEntry) -> Option<ThroughputSource> {
        ThroughputSource::within(&account.catalog.snapshot(), account, container)
    }

    fn within(
        snapshot: &CatalogSnapshot,
        account: &Account,
        container: &ContainerEntry,
    ) -> Option<ThroughputSource> {
        if let Some(offer) = container.offer {
            let throughput = snapshot.offer(offer)?.throughput.clone();
            let rate = f64::from(throughput.max()) / container.store.partitions().len() as f64;
            return Some(ThroughputSource { throughput, rate, pools: None });
        }
        let database = snapshot.database_by_rid(container.rid.database)?;
        let throughput = snapshot.offer(database.offer?)?.throughput.clone();
        let pools = throughput::initial_partition_count(account.partitions, &throughput);
        let rate = f64::from(throughput.max()) / pools as f64;
        Some(ThroughputSource { throughput, rate, pools: Some((Arc::clone(&database.pools), pools)) })
    }

    /// What one of the container's partitions spends from.
    pub fn token_buckets<'a>(
        &self,
        container: &ContainerEntry,
        partition: &'a Partition,
    ) -> TokenBucketsRef<'a> {
        let Some((pools, count)) = &self.pools else {
            return TokenBucketsRef::Own(&partition.throughput.token_buckets);
        };
        let partitions = container.store.partitions();
        let position = partitions.iter().position(|other| other.identity.id == partition.identity.id);
        TokenBucketsRef::Shared(pools.of(position.unwrap_or(0), partitions.len(), *count))
    }
}

/// What the partitions of one container spent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContainerUsage {
    /// The database's name.
    pub database: String,
    /// The container's name.
    pub container: String,
    /// Request units per second that pay for it, at most.
    pub throughput: u32,
    /// The same, or what autoscale scaled to this hour: the busiest partition decides, and a tenth of
    /// the maximum is the least.
    pub scaled_throughput: u32,
    /// Each partition in each region that has used it, in the order of the ring.
    pub partitions: Vec<(u32, RegionId, PartitionUsage)>,
}

/// What everybody spent, by this uptime.
pub fn usage(account: &Account, uptime: Duration) -> Vec<ContainerUsage> {
    let snapshot = account.catalog.snapshot();
    let mut all = Vec::new();
    for database in snapshot.databases_after(None) {
        for container in database.containers_after(None) {
            let Some(funding) = ThroughputSource::within(&snapshot, account, container) else { continue };
            let partitions: Vec<_> = container
                .store
                .partitions()
                .iter()
                .flat_map(|partition| {
                    let usages = partition.throughput.usage_by_region(funding.rate, uptime);
                    usages.map(|(region, usage)| (partition.identity.id, region, usage)).collect::<Vec<_>>()
                })
                .collect();
            let busiest = partitions.iter().map(|(_, _, usage)| usage.hour_peak).fold(0.0, f64::max);
            all.push(ContainerUsage {
                database: database.id.to_string(),
                container: container.id.to_string(),
                throughput: funding.throughput.max(),
                scaled_throughput: scaled(&funding.throughput, busiest / funding.rate),
                partitions,
            });
        }
    }
    all
}

/// What a throughput comes to while its busiest partition uses this share of its part. Pure.
fn scaled(throughput: &Throughput, busiest: f64) -> u32 {
    let max = throughput.max();
    match throughput {
        Throughput::Manual(_) => max,
        Throughput::Autoscale { .. } => {
            let used = (f64::from(max) * busiest).ceil();
            // Between two numbers of 32 bits.
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
