//! Which region and endpoint an attempt is sent to.
//!
//! In: a snapshot of the account ([`AccountState`]) and of its partitions ([`PartitionState`]), and what the
//! attempt needs ([`RouteRequest`]). Out: one [`Route`]. [`resolve`] is pure; the states are replaced, never changed,
//! through a [`StateCell`]; when the account's properties may be read again is `refresh`.

#![warn(clippy::wildcard_enum_match_arm)]

mod account_state;
mod breaker;
mod diversion;
mod endpoint;
mod gateway2;
mod last_response;
mod latencies;
mod partition_map;
mod partition_state;
pub(crate) mod refresh;
mod silence;
mod state_cell;

pub(crate) use account_state::UNAVAILABLE_FOR;
pub use account_state::{AccountState, Unavailable};
pub use breaker::{Breaker, BreakerState, PartitionFailure};
pub use diversion::{Diversion, DiversionCause};
pub use endpoint::{Endpoint, EndpointKind};
pub use gateway2::Gateway2;
pub use partition_map::{IncompleteMap, Partition, PartitionMap, Placement};
pub(crate) use partition_state::failback_interval;
pub use partition_state::{ContainerIdentity, PartitionId, PartitionRegion, PartitionState};
pub(crate) use silence::ProbeRole;
pub(crate) use state_cell::StateCell;

use crate::operation::Access;
pub(crate) use crate::region::Region;

#[cfg(test)]
pub(crate) use account_state::tests as test_accounts;
#[cfg(test)]
pub(crate) use partition_state::tests as test_partitions;

/// What a route is needed for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RouteRequest<'a> {
    /// Whether the operation is a read or a write.
    pub access: Access,
    /// The partition of the operation, when it is about one.
    pub partition: Option<&'a PartitionId>,
    /// Regions that the caller excludes.
    pub excluded: &'a [Region],
    /// Regions that this operation has already tried.
    pub already_tried: &'a [Region],
    /// Whether the hub region, which has every write, is preferred to the nearest one.
    pub prefer_hub: bool,
}

impl RouteRequest<'_> {
    /// How many regions may serve the operation.
    pub(crate) fn region_count(&self, account: &AccountState) -> usize {
        candidates(self, account).iter().filter(|endpoint| !self.excluded.contains(endpoint.region())).count()
    }
}

/// Where an attempt is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// The endpoint of the attempt.
    pub endpoint: Endpoint,
    /// The region that would have been chosen, and why it was not.
    pub diversion: Option<Diversion>,
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
            return Route { endpoint: hub.clone(), diversion: None, is_clean: true };
        }
    }
    let mut best: Option<(&Endpoint, u8)> = None;
    let mut avoided = None;
    for endpoint in
        candidates(wanted, account).iter().filter(|endpoint| !wanted.excluded.contains(endpoint.region()))
    {
        let penalty = Penalty::of(endpoint, wanted, account, partitions);
        let weight = penalty.weight();
        // What this operation has tried itself is a retry, which its record shows anyway.
        if avoided.is_none() && best.is_none() && weight > 0 && !penalty.already_tried {
            avoided = Some(endpoint.region());
        }
        if best.is_none_or(|(_, least)| weight < least) {
            best = Some((endpoint, weight));
        }
        if weight == 0 {
            break;
        }
    }
    let (endpoint, weight) = best.unwrap_or((account.hub(), 0));
    let diversion = avoided
        .filter(|region| *region != endpoint.region())
        .and_then(|region| Diversion::from(region, wanted, account, partitions));
    Route { endpoint: endpoint.clone(), diversion, is_clean: weight == 0 }
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
    let endpoints = match wanted.access {
        Access::Read => account.reads(),
        Access::Write => account.writes(),
    };
    let endpoint = endpoints.iter().find(suitable)?;
    Some(Route { endpoint: endpoint.clone(), diversion: None, is_clean: true })
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
    if wanted.access == Access::Read {
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
            unavailable: account.is_unavailable(region, wanted.access == Access::Read),
            breaker_open: wanted
                .partition
                .is_some_and(|partition| partitions.is_open(partition, region, wanted.access)),
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

    fn access(write: bool) -> Access {
        if write { Access::Write } else { Access::Read }
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
                let key = PartitionRegion { partition: partition(), region, access: access(row.write) };
                partitions = partitions.trip(&key, now);
            }
            let wanted = RouteRequest {
                access: access(row.write),
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
    fn a_route_names_the_region_it_avoids_and_why() {
        let now = Clock::machine().now();
        let known = account(&["A"], &["A", "B"]);
        let key = PartitionRegion { partition: partition(), region: Region::new("A"), access: Access::Read };
        let tripped = healthy().trip(&key, now);
        let down = known.mark_unavailable(&Region::new("A"), Unavailable::All, now);
        let other = PartitionId { range: RangeId(4), ..partition() };
        for (account, partition, already_tried, cause) in [
            (&known, &partition(), &[][..], Some("the breaker of its reads is open after 0 failures")),
            (&known, &other, &[], None),
            (&known, &partition(), &["A"], None),
            (&down, &other, &[], Some("the region is unavailable")),
        ] {
            let wanted = RouteRequest {
                access: Access::Read,
                partition: Some(partition),
                excluded: &[],
                already_tried: &regions(already_tried),
                prefer_hub: false,
            };
            let diversion = resolve(&wanted, account, &tripped).diversion;
            assert_eq!(diversion.as_ref().map(|diversion| diversion.cause.to_string()).as_deref(), cause);
            assert!(diversion.is_none_or(|diversion| diversion.region == Region::new("A")));
        }
    }

    #[test]
    fn a_breaker_of_writes_lets_reads_through() {
        let account = account(&["A", "B"], &["A", "B"]);
        let key = PartitionRegion { partition: partition(), region: Region::new("A"), access: Access::Write };
        let tripped = healthy().trip(&key, Clock::machine().now());
        for (access, region) in [(Access::Read, "A"), (Access::Write, "B")] {
            let wanted = RouteRequest {
                access,
                partition: Some(&partition()),
                excluded: &[],
                already_tried: &[],
                prefer_hub: false,
            };
            let route = resolve(&wanted, &account, &tripped);
            assert_eq!(route.endpoint.region(), &Region::new(region), "{access:?}");
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
                access: access(write),
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
        for (access, already_tried, excluded, expected) in [
            (Access::Read, &[][..], &[][..], 2),
            (Access::Read, &["B"], &[], 1),
            (Access::Read, &["B"], &["C"], 0),
            (Access::Write, &[], &[], 0),
        ] {
            let (already_tried, excluded) = (regions(already_tried), regions(excluded));
            let wanted = RouteRequest {
                access,
                partition: None,
                excluded: &excluded,
                already_tried: &already_tried,
                prefer_hub: false,
            };
            assert_eq!(count_untried(&Region::new("A"), &wanted, &account), expected);
        }
    }
}
