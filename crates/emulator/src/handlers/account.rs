//! The account resource, `GET /`: its consistency level and the endpoints of its regions.
//!
//! Every SDK leaves the endpoint it was given for the ones in this response, so they have to lead back here
//! the way the client came.

use protocol::account::{AccountProperties, Location};

use crate::advertised_hosts::AdvertisedHosts;
use crate::request::{Call, Origin};
use crate::response::Reply;
use engine::regions::{RegionId, Topology};

/// `GET /`: reads the account.
pub(crate) fn read(call: &Call<'_>) -> Reply {
    let account = call.account;
    let topology = account.regions.current();
    let regions = locations(&topology, &call.origin(), call.advertised_hosts);
    let mut body = AccountProperties::new(&account.name, regions, topology.consistency);
    body.enable_per_partition_failover_behavior = topology.has_partition_failover();
    if topology.is_multi_write() {
        body.writable_locations.clone_from(&body.readable_locations);
        body.enable_multiple_write_locations = true;
    } else if let Some(also) = topology.also_writable() {
        let name = &topology.region(also).name;
        body.writable_locations
            .extend(body.readable_locations.iter().find(|location| location.name == *name).cloned());
    }
    Reply::ok(serde_json::to_vec(&body).expect("strings and numbers always serialise").into())
}

/// The endpoints of the regions, in failover order. A single region has the port that the client used, which a
/// port mapping may have changed; several differ by port.
fn locations(topology: &Topology, origin: &Origin<'_>, advertised_hosts: &AdvertisedHosts) -> Vec<Location> {
    let location = |id: &RegionId| {
        let region = topology.region(*id);
        let host = advertised_hosts.region(&region.name);
        let database_account_endpoint = match topology.region_count() {
            1 => origin.endpoint(host.as_deref()),
            _ => origin.endpoint_on(host.as_deref(), region.port),
        };
        Location { name: region.name.clone(), database_account_endpoint }
    };
    topology.failover_order().iter().map(location).collect()
}
