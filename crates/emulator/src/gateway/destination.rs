//! Which region serves a request.
//!
//! A region's own endpoint leads to that region. The account's endpoint leads to the write region, as the
//! service's global name does, with one exception: the account resource, by which clients find the regions, is
//! served by the first region that can be reached, and a fault of one region does not apply to it.

use std::time::Duration;

use engine::regions::{RegionId, Topology};
use faults::PortState;
use http::Method;
use http::request::Parts;

use crate::faults::AccountFaults;

/// The endpoint that a gateway serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// The endpoint of one region.
    Region(RegionId),
    /// The account's own endpoint.
    Account,
}

/// The region that serves a request, and what of its faults applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) region: RegionId,
    /// Whether fault rules about the region apply.
    pub(super) has_region_faults: bool,
    /// The state of the region's port, if the request did not come through it.
    pub(super) port: PortState,
}

impl Destination {
    /// A request that came through the region's own port.
    fn region(region: RegionId) -> Destination {
        Destination { region, has_region_faults: true, port: PortState::Open }
    }

    /// Decides which region serves a request that arrived at `endpoint`.
    pub(super) fn of(
        endpoint: Endpoint,
        parts: &Parts,
        topology: &Topology,
        faults: &AccountFaults,
        now: Duration,
    ) -> Destination {
        match endpoint {
            Endpoint::Region(region) => Destination::region(region),
            // Its port is that of the only region.
            Endpoint::Account if topology.region_count() == 1 => Destination::region(RegionId(0)),
            Endpoint::Account if parts.method == Method::GET && parts.uri.path() == "/" => {
                let state = |region: &RegionId| faults.port_state(*region, now).0;
                let mut order = topology.failover_order().iter();
                let reachable = order.find(|region| state(region) == PortState::Open);
                let region = reachable.copied().unwrap_or_else(|| topology.hub());
                Destination { region, has_region_faults: false, port: state(&region) }
            }
            Endpoint::Account => {
                let region = topology.hub();
                Destination { region, has_region_faults: true, port: faults.port_state(region, now).0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::regions::{Lag, Region, Regions};
    use http::Request;
    use protocol::account::ConsistencyLevel;

    use super::*;
    use crate::faults::{DownMode, RegionFault};

    fn destination(faults: &AccountFaults, endpoint: Endpoint, path: &str) -> Destination {
        let (parts, ()) = Request::get(path).body(()).unwrap().into_parts();
        Destination::of(endpoint, &parts, &faults.regions().current(), faults, Duration::ZERO)
    }

    #[test]
    fn the_account_endpoint_leads_to_the_write_region_and_finds_another_for_the_account_resource() {
        let regions = ["West US", "East US"].map(|name| Region::new(name, 0)).to_vec();
        let topology = Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap();
        let faults = AccountFaults::new(Arc::new(Regions::new(topology)), 1);
        let at = |path| destination(&faults, Endpoint::Account, path);
        assert_eq!(at("/dbs"), Destination::region(RegionId(0)));
        assert_eq!((at("/").region, at("/").has_region_faults), (RegionId(0), false));
        let east = destination(&faults, Endpoint::Region(RegionId(1)), "/");
        assert_eq!(east, Destination::region(RegionId(1)));
        for (mode, port) in
            [(DownMode::Refused, PortState::Refused), (DownMode::BlackHole, PortState::Silent)]
        {
            faults.set_region_fault("West US", RegionFault::Down(mode), None, Duration::ZERO).unwrap();
            assert_eq!((at("/dbs").region, at("/dbs").port), (RegionId(0), port));
            assert_eq!((at("/").region, at("/").port), (RegionId(1), PortState::Open));
        }
        let down = RegionFault::Down(DownMode::Refused);
        faults.set_region_fault("East US", down, None, Duration::ZERO).unwrap();
        assert_eq!((at("/").region, at("/").port), (RegionId(0), PortState::Silent), "none can be reached");
    }
}
