//! Where to send.
//!
//! In: a snapshot of the account ([`AccountState`]) and of its partitions ([`PartitionState`]), and what the
//! attempt is for ([`Demand`]). Out: one [`Route`]. [`resolve`] is pure; the states are replaced, never changed,
//! through a [`StateCell`]; when the account's properties may be read again is `refresh`.

mod account_state;
mod endpoint;
mod gateway2;
mod latencies;
mod partition_map;
mod partition_state;
pub(crate) mod refresh;
mod state_cell;

pub use account_state::{AccountState, UNAVAILABLE_FOR, Unavailable};
pub use endpoint::{Endpoint, EndpointKind};
pub use gateway2::Gateway2;
pub use partition_map::{IncompleteMap, Partition, PartitionMap};
pub(crate) use partition_state::look_every;
pub use partition_state::{
    Breaker, BreakerState, ContainerIdentity, PartitionId, PartitionRegion, PartitionState,
};
pub use state_cell::StateCell;

pub use crate::region::Region;

#[cfg(test)]
pub(crate) use account_state::tests as test_accounts;
#[cfg(test)]
pub(crate) use partition_state::tests as test_partitions;

/// What a route is needed for.
#[derive(Clone, Copy, Debug)]
pub struct Demand<'a> {
    /// Whether the operation leaves everything as it was.
    pub is_read: bool,
    /// The partition it is about, when it is about one.
    pub partition: Option<&'a PartitionId>,
    /// Regions the caller does not want.
    pub excluded: &'a [Region],
    /// Regions this operation has tried and left.
    pub left: &'a [Region],
    /// Whether the region that has every write is wanted, not the nearest.
    pub from_hub: bool,
}

/// Where an attempt goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where.
    pub endpoint: Endpoint,
    /// The region it would have gone to, were it not for this partition's trouble there.
    pub instead_of: Option<Region>,
    /// Nothing is known against it: it is well, and this operation has not left it.
    pub is_clean: bool,
}

/// Chooses where an attempt goes: the best region that is wanted, is not known to be in trouble, and has not
/// been left by this operation. When there is no such region, the one with the least against it; when the
/// caller wants none of them, the hub.
///
/// Cost: one pass over the regions; nothing is allocated.
pub fn resolve(demand: &Demand<'_>, account: &AccountState, partitions: &PartitionState) -> Route {
    if demand.from_hub {
        let hub = account.hub();
        if !demand.excluded.contains(hub.region()) && !demand.left.contains(hub.region()) {
            return Route { endpoint: hub.clone(), instead_of: None, is_clean: true };
        }
    }
    let mut best: Option<(&Endpoint, u8)> = None;
    let mut avoided_for_partition = None;
    for endpoint in
        candidates(demand, account).iter().filter(|endpoint| !demand.excluded.contains(endpoint.region()))
    {
        let against = Against::find(endpoint, demand, account, partitions);
        if against.partition && avoided_for_partition.is_none() && best.is_none() {
            avoided_for_partition = Some(endpoint.region());
        }
        let weight = against.weight();
        if best.is_none_or(|(_, least)| weight < least) {
            best = Some((endpoint, weight));
        }
        if weight == 0 {
            break;
        }
    }
    let (endpoint, weight) = best.unwrap_or((account.hub(), 0));
    let instead_of = avoided_for_partition.filter(|region| *region != endpoint.region()).cloned();
    Route { endpoint: endpoint.clone(), instead_of, is_clean: weight == 0 }
}

/// A region besides `route`'s to race it with: one that nothing is known against, or none.
pub fn resolve_second(
    route: &Route,
    demand: &Demand<'_>,
    account: &AccountState,
    partitions: &PartitionState,
) -> Option<Route> {
    let wanted = |endpoint: &&Endpoint| {
        **endpoint != route.endpoint
            && endpoint.region() != route.endpoint.region()
            && !demand.excluded.contains(endpoint.region())
            && Against::find(endpoint, demand, account, partitions).weight() == 0
    };
    // A race is for reads, and for writes where several regions take them: never into a failover.
    let endpoints = if demand.is_read { account.reads() } else { account.writes() };
    let endpoint = endpoints.iter().find(wanted)?;
    Some(Route { endpoint: endpoint.clone(), instead_of: None, is_clean: true })
}

/// How many regions besides `current` this operation could still turn to.
pub fn others(current: &Region, demand: &Demand<'_>, account: &AccountState) -> usize {
    let other = |endpoint: &&Endpoint| {
        let region = endpoint.region();
        region != current && !demand.excluded.contains(region) && !demand.left.contains(region)
    };
    candidates(demand, account).iter().filter(other).count()
}

fn candidates<'a>(demand: &Demand<'_>, account: &'a AccountState) -> &'a [Endpoint] {
    if demand.is_read {
        account.reads()
    } else if account.has_partition_failover() && demand.partition.is_some() {
        account.failover_writes()
    } else {
        account.writes()
    }
}

/// What speaks against a region.
struct Against {
    left: bool,
    region: bool,
    partition: bool,
}

impl Against {
    fn find(
        endpoint: &Endpoint,
        demand: &Demand<'_>,
        account: &AccountState,
        partitions: &PartitionState,
    ) -> Against {
        let region = endpoint.region();
        Against {
            left: !demand.left.is_empty() && demand.left.contains(region),
            region: account.is_unavailable(region, demand.is_read),
            partition: demand.partition.is_some_and(|partition| partitions.is_open(partition, region)),
        }
    }

    /// What this operation saw for itself weighs most, what others saw of the partition least.
    fn weight(&self) -> u8 {
        u8::from(self.left) * 4 + u8::from(self.region) * 2 + u8::from(self.partition)
    }
}

#[cfg(test)]
mod tests {
    use protocol::partition_range::RangeId;

    use super::account_state::tests::{account, global, properties};
    use super::*;
    use crate::clock::Clock;
    use crate::options::CircuitBreakerConfig;

    fn regions(names: &[&str]) -> Vec<Region> {
        names.iter().map(Region::new).collect()
    }

    fn partition() -> PartitionId {
        super::partition_state::tests::partition(3)
    }

    fn healthy() -> PartitionState {
        PartitionState::new(CircuitBreakerConfig::default())
    }

    /// One row: what is known, what is wanted, and where it goes.
    #[derive(Default)]
    struct Row<'a> {
        multi_write: bool,
        partition_failover: bool,
        down: &'a [&'a str],
        no_writes: &'a [&'a str],
        open: &'a [&'a str],
        write: bool,
        excluded: &'a [&'a str],
        left: &'a [&'a str],
        from_hub: bool,
        goes_to: &'a str,
    }

    #[test]
    fn the_best_region_with_the_least_against_it_is_chosen() {
        let rows = [
            Row { goes_to: "A", ..Row::default() },
            Row { down: &["A"], goes_to: "B", ..Row::default() },
            Row { down: &["A", "B"], goes_to: "C", ..Row::default() },
            Row { down: &["A", "B", "C"], goes_to: "A", ..Row::default() },
            Row { no_writes: &["A"], goes_to: "A", ..Row::default() },
            Row { left: &["A"], goes_to: "B", ..Row::default() },
            Row { left: &["A", "B"], goes_to: "C", ..Row::default() },
            // What this operation saw outweighs what others saw.
            Row { left: &["A", "C"], down: &["B"], goes_to: "B", ..Row::default() },
            Row { open: &["A"], goes_to: "B", ..Row::default() },
            Row { open: &["A", "B", "C"], goes_to: "A", ..Row::default() },
            Row { open: &["B"], down: &["A"], goes_to: "C", ..Row::default() },
            Row { excluded: &["A"], goes_to: "B", ..Row::default() },
            Row { excluded: &["A", "C"], down: &["B"], goes_to: "B", ..Row::default() },
            Row { excluded: &["A", "B", "C"], goes_to: "A", ..Row::default() },
            Row { from_hub: true, left: &["B"], goes_to: "A", ..Row::default() },
            Row { from_hub: true, left: &["A"], goes_to: "B", ..Row::default() },
            Row { from_hub: true, excluded: &["A"], goes_to: "B", ..Row::default() },
            // Writes have one home, whatever happens there...
            Row { write: true, goes_to: "A", ..Row::default() },
            Row { write: true, down: &["A"], goes_to: "A", ..Row::default() },
            Row { write: true, open: &["A"], goes_to: "A", ..Row::default() },
            Row { write: true, excluded: &["A"], goes_to: "A", ..Row::default() },
            // ... or several ...
            Row { write: true, multi_write: true, no_writes: &["A"], goes_to: "B", ..Row::default() },
            Row { write: true, multi_write: true, open: &["A"], goes_to: "B", ..Row::default() },
            // ... or one per partition.
            Row { write: true, partition_failover: true, goes_to: "A", ..Row::default() },
            Row { write: true, partition_failover: true, open: &["A"], goes_to: "B", ..Row::default() },
            Row { write: true, partition_failover: true, left: &["A", "B"], goes_to: "C", ..Row::default() },
        ];
        let now = Clock::machine().now();
        for (index, row) in rows.iter().enumerate() {
            let writes: &[&str] = if row.multi_write { &["A", "B", "C"] } else { &["A"] };
            let mut properties = properties(writes, &["A", "B", "C"]);
            properties.enable_per_partition_failover_behavior = row.partition_failover;
            let mut account = AccountState::unknown(global()).with_properties(&properties, &[]);
            for region in regions(row.down) {
                account = account.mark_unavailable(&region, Unavailable::All, now);
            }
            for region in regions(row.no_writes) {
                account = account.mark_unavailable(&region, Unavailable::Writes, now);
            }
            let mut partitions = healthy();
            for region in regions(row.open) {
                partitions = partitions.trip(&PartitionRegion { partition: partition(), region }, now);
            }
            let demand = Demand {
                is_read: !row.write,
                partition: Some(&partition()),
                excluded: &regions(row.excluded),
                left: &regions(row.left),
                from_hub: row.from_hub,
            };
            let route = resolve(&demand, &account, &partitions);
            assert_eq!(route.endpoint.region().as_str(), row.goes_to, "row {index}");
        }
    }

    #[test]
    fn a_route_says_when_it_leaves_a_partition_in_trouble() {
        let account = account(&["A"], &["A", "B"]);
        let key = PartitionRegion { partition: partition(), region: Region::new("A") };
        let partitions = healthy().trip(&key, Clock::machine().now());
        let other = PartitionId { range: RangeId(4), ..partition() };
        for (partition, instead_of) in [(&partition(), Some(Region::new("A"))), (&other, None)] {
            let demand = Demand {
                is_read: true,
                partition: Some(partition),
                excluded: &[],
                left: &[],
                from_hub: false,
            };
            assert_eq!(resolve(&demand, &account, &partitions).instead_of, instead_of);
        }
    }

    #[test]
    fn a_second_region_is_one_that_nothing_speaks_against() {
        let now = Clock::machine().now();
        for (write, multi_write, down, excluded, second) in [
            (false, false, &[][..], &[][..], Some("B")),
            (false, false, &["B"], &[], Some("C")),
            (false, false, &["B"], &["C"], None),
            (true, false, &[], &[], None),
            (true, true, &[], &[], Some("B")),
        ] {
            let writes: &[&str] = if multi_write { &["A", "B", "C"] } else { &["A"] };
            let mut account = account(writes, &["A", "B", "C"]);
            for region in regions(down) {
                account = account.mark_unavailable(&region, Unavailable::All, now);
            }
            let excluded = regions(excluded);
            let demand =
                Demand { is_read: !write, partition: None, excluded: &excluded, left: &[], from_hub: false };
            let route = resolve(&demand, &account, &healthy());
            let found = resolve_second(&route, &demand, &account, &healthy());
            assert_eq!(found.map(|route| route.endpoint.region().as_str().to_owned()).as_deref(), second);
        }
    }

    #[test]
    fn others_are_those_that_were_not_left() {
        let account = account(&["A"], &["A", "B", "C"]);
        for (is_read, left, excluded, expected) in [
            (true, &[][..], &[][..], 2),
            (true, &["B"], &[], 1),
            (true, &["B"], &["C"], 0),
            (false, &[], &[], 0),
        ] {
            let (left, excluded) = (regions(left), regions(excluded));
            let demand =
                Demand { is_read, partition: None, excluded: &excluded, left: &left, from_hub: false };
            assert_eq!(others(&Region::new("A"), &demand, &account), expected);
        }
    }
}
