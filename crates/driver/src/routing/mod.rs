//! Which region and endpoint an attempt is sent to.
//!
//! In: a snapshot of the account ([`AccountState`]) and of its partitions ([`PartitionState`]), and what the
//! attempt needs ([`RouteRequest`]). Out: one [`Route`]. [`resolve`] is pure; the states are replaced, never changed,
//! through a [`StateCell`]; when the account's properties may be read again is `refresh`.

#![warn(clippy::wildcard_enum_match_arm)]

mod account_state;
mod endpoint;
mod gateway2;
mod latencies;
mod partition_map;
mod partition_state;
pub(crate) mod refresh;
mod state_cell;

pub(crate) use account_state::UNAVAILABLE_FOR;
pub use account_state::{AccountState, Unavailable};
pub use endpoint::{Endpoint, EndpointKind};
pub use gateway2::Gateway2;
pub use partition_map::{IncompleteMap, Partition, PartitionMap, Placement};
pub(crate) use partition_state::failback_interval;
pub use partition_state::{
    Breaker, BreakerState, ContainerIdentity, PartitionId, PartitionRegion, PartitionState,
};
pub(crate) use state_cell::StateCell;

pub(crate) use crate::region::Region;

#[cfg(test)]
pub(crate) use account_state::tests as test_accounts;
#[cfg(test)]
pub(crate) use partition_state::tests as test_partitions;

/// What a route is needed for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteRequest<'a> {
    /// Whether the operation is a read.
    pub is_read: bool,
    /// The partition of the operation, when it is about one.
    pub partition: Option<&'a PartitionId>,
    /// Regions that the caller excludes.
    pub excluded: &'a [Region],
    /// Regions that this operation has already tried.
    pub already_tried: &'a [Region],
    /// Whether the hub region, which has every write, is preferred to the nearest one.
    pub prefer_hub: bool,
}

/// Where an attempt is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The endpoint of the attempt.
    pub endpoint: Endpoint,
    /// The region that would have been chosen if the breaker of the partition there were not open.
    pub instead_of: Option<Region>,
    /// Whether nothing speaks against the region: it is available, and this operation has not tried it.
    pub is_clean: bool,
}

/// Chooses where an attempt is sent: the best region that is not excluded, is available, and was not tried by
/// this operation. When there is no such region, the one with the lowest penalty; when all regions are excluded,
/// the hub.
///
/// Cost: one pass over the regions; nothing is allocated.
pub(crate) fn resolve(
    wanted: &RouteRequest<'_>,
    account: &AccountState,
    partitions: &PartitionState,
) -> Route {
    if wanted.prefer_hub {
        let hub = account.hub();
        if !wanted.excluded.contains(hub.region()) && !wanted.already_tried.contains(hub.region()) {
            return Route { endpoint: hub.clone(), instead_of: None, is_clean: true };
        }
    }
    let mut best: Option<(&Endpoint, u8)> = None;
    let mut avoided_for_partition = None;
    for endpoint in
        candidates(wanted, account).iter().filter(|endpoint| !wanted.excluded.contains(endpoint.region()))
    {
        let penalty = Penalty::of(endpoint, wanted, account, partitions);
        if penalty.breaker_open && avoided_for_partition.is_none() && best.is_none() {
            avoided_for_partition = Some(endpoint.region());
        }
        let weight = penalty.weight();
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

/// Chooses another region than `route`'s for a hedged attempt: one without any penalty, or none.
pub(crate) fn resolve_second(
    route: &Route,
    wanted: &RouteRequest<'_>,
    account: &AccountState,
    partitions: &PartitionState,
) -> Option<Route> {
    let suitable = |endpoint: &&Endpoint| {
        **endpoint != route.endpoint
            && endpoint.region() != route.endpoint.region()
            && !wanted.excluded.contains(endpoint.region())
            && Penalty::of(endpoint, wanted, account, partitions).weight() == 0
    };
    // Writes are hedged only where several regions take them, so the failover list is not used.
    let endpoints = if wanted.is_read { account.reads() } else { account.writes() };
    let endpoint = endpoints.iter().find(suitable)?;
    Some(Route { endpoint: endpoint.clone(), instead_of: None, is_clean: true })
}

/// How many regions besides `current` this operation has not tried yet.
pub(crate) fn count_untried(current: &Region, wanted: &RouteRequest<'_>, account: &AccountState) -> usize {
    let untried = |endpoint: &&Endpoint| {
        let region = endpoint.region();
        region != current && !wanted.excluded.contains(region) && !wanted.already_tried.contains(region)
    };
    candidates(wanted, account).iter().filter(untried).count()
}

fn candidates<'a>(wanted: &RouteRequest<'_>, account: &'a AccountState) -> &'a [Endpoint] {
    if wanted.is_read {
        account.reads()
    } else if account.has_partition_failover() && wanted.partition.is_some() {
        account.failover_writes()
    } else {
        account.writes()
    }
}

/// What speaks against a region.
struct Penalty {
    already_tried: bool,
    unavailable: bool,
    breaker_open: bool,
}

impl Penalty {
    fn of(
        endpoint: &Endpoint,
        wanted: &RouteRequest<'_>,
        account: &AccountState,
        partitions: &PartitionState,
    ) -> Penalty {
        let region = endpoint.region();
        Penalty {
            already_tried: wanted.already_tried.contains(region),
            unavailable: account.is_unavailable(region, wanted.is_read),
            breaker_open: wanted.partition.is_some_and(|partition| partitions.is_open(partition, region)),
        }
    }

    /// A region that this operation has tried itself weighs most, one where others saw the partition fail least.
    fn weight(&self) -> u8 {
        u8::from(self.already_tried) * 4 + u8::from(self.unavailable) * 2 + u8::from(self.breaker_open)
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
        already_tried: &'a [&'a str],
        prefer_hub: bool,
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
            Row { already_tried: &["A"], goes_to: "B", ..Row::default() },
            Row { already_tried: &["A", "B"], goes_to: "C", ..Row::default() },
            // What this operation saw outweighs what others saw.
            Row { already_tried: &["A", "C"], down: &["B"], goes_to: "B", ..Row::default() },
            Row { open: &["A"], goes_to: "B", ..Row::default() },
            Row { open: &["A", "B", "C"], goes_to: "A", ..Row::default() },
            Row { open: &["B"], down: &["A"], goes_to: "C", ..Row::default() },
            Row { excluded: &["A"], goes_to: "B", ..Row::default() },
            Row { excluded: &["A", "C"], down: &["B"], goes_to: "B", ..Row::default() },
            Row { excluded: &["A", "B", "C"], goes_to: "A", ..Row::default() },
            Row { prefer_hub: true, already_tried: &["B"], goes_to: "A", ..Row::default() },
            Row { prefer_hub: true, already_tried: &["A"], goes_to: "B", ..Row::default() },
            Row { prefer_hub: true, excluded: &["A"], goes_to: "B", ..Row::default() },
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
            Row {
                write: true,
                partition_failover: true,
                already_tried: &["A", "B"],
                goes_to: "C",
                ..Row::default()
            },
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
            let wanted = RouteRequest {
                is_read: !row.write,
                partition: Some(&partition()),
                excluded: &regions(row.excluded),
                already_tried: &regions(row.already_tried),
                prefer_hub: row.prefer_hub,
            };
            let route = resolve(&wanted, &account, &partitions);
            assert_eq!(route.endpoint.region().as_str(), row.goes_to, "row {index}");
        }
    }

    #[test]
    fn a_route_names_the_region_it_avoids_for_a_partition() {
        let account = account(&["A"], &["A", "B"]);
        let key = PartitionRegion { partition: partition(), region: Region::new("A") };
        let partitions = healthy().trip(&key, Clock::machine().now());
        let other = PartitionId { range: RangeId(4), ..partition() };
        for (partition, instead_of) in [(&partition(), Some(Region::new("A"))), (&other, None)] {
            let wanted = RouteRequest {
                is_read: true,
                partition: Some(partition),
                excluded: &[],
                already_tried: &[],
                prefer_hub: false,
            };
            assert_eq!(resolve(&wanted, &account, &partitions).instead_of, instead_of);
        }
    }

    #[test]
    fn a_hedged_region_has_no_penalty() {
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
            let wanted = RouteRequest {
                is_read: !write,
                partition: None,
                excluded: &excluded,
                already_tried: &[],
                prefer_hub: false,
            };
            let route = resolve(&wanted, &account, &healthy());
            let found = resolve_second(&route, &wanted, &account, &healthy());
            assert_eq!(found.map(|route| route.endpoint.region().as_str().to_owned()).as_deref(), second);
        }
    }

    #[test]
    fn untried_regions_are_counted() {
        let account = account(&["A"], &["A", "B", "C"]);
        for (is_read, already_tried, excluded, expected) in [
            (true, &[][..], &[][..], 2),
            (true, &["B"], &[], 1),
            (true, &["B"], &["C"], 0),
            (false, &[], &[], 0),
        ] {
            let (already_tried, excluded) = (regions(already_tried), regions(excluded));
            let wanted = RouteRequest {
                is_read,
                partition: None,
                excluded: &excluded,
                already_tried: &already_tried,
                prefer_hub: false,
            };
            assert_eq!(count_untried(&Region::new("A"), &wanted, &account), expected);
        }
    }
}
