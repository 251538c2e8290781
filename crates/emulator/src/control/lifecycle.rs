//! Removing regions from the account, adding them again, and failovers step by step.
//!
//! The names are those of the management surface that the Rust SDK's own tests use; `region_faults` has the
//! single faults of a region.

use http::Method;
use serde::Deserialize;

use super::regions::regions_view;
use super::request::EmptyBody;
use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult};
use crate::faults::{DownMode, RegionCondition, RegionControl};
use crate::region_servers::AddRegionError;
use engine::regions::{RegionId, TopologyError};

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/regions/{region}/offline",
        about: "take it down; the next one writes if it did",
        handle: offline,
    },
    Route { method: Method::POST, path: "/regions/{region}/online", about: "bring it up", handle: online },
    Route {
        method: Method::POST,
        path: "/regions/{region}/removal/begin",
        about: "answer 403/1008 there while it is still listed",
        handle: begin_removal,
    },
    Route {
        method: Method::POST,
        path: "/regions/{region}/removal/cancel",
        about: "let it stay",
        handle: cancel_removal,
    },
    Route {
        method: Method::POST,
        path: "/regions/{region}/remove",
        about: "list it no longer, and answer 403/1008 there",
        handle: remove,
    },
    Route {
        method: Method::POST,
        path: "/regions/{region}/add",
        about: "add a region, or list a removed one again; it is the last in the failover order",
        handle: add,
    },
    Route {
        method: Method::POST,
        path: "/failover/{region}/announce",
        about: "list it as writable too, while the one before goes on to write",
        handle: announce,
    },
    Route {
        method: Method::POST,
        path: "/failover/{region}/begin",
        about: "it writes now; the one before answers 403/3 and is still listed as writable",
        handle: begin,
    },
    Route {
        method: Method::POST,
        path: "/failover/complete",
        about: "list as writable only what is",
        handle: complete,
    },
    Route {
        method: Method::PUT,
        path: "/failover/priorities",
        about: r#"set the failover order {"regions":["East US","West US"]}; the first one writes"#,
        handle: priorities,
    },
];

fn offline(control: &Control, request: &ControlRequest) -> ControlResult {
    let region = listed_region_in_path(control, request)?;
    let topology = control.account.regions.current();
    if !topology.is_multi_write() && topology.hub() == topology.find(region.name())? {
        control.account.fail_over(&next_writer(control, region.name())?)?;
    }
    drop(topology);
    region.down(DownMode::Refused)?;
    regions_view(control)
}

/// The first region in failover order, other than `leaving`, without a fault.
fn next_writer(control: &Control, leaving: &str) -> Result<String, ControlError> {
    let topology = control.account.regions.current();
    let health = control.faults.regions();
    let is_up =
        |name: &String| health.get(name).is_some_and(|health| health.condition == RegionCondition::Up);
    let mut order = topology.failover_order().iter().map(|id| &topology.region(*id).name);
    order.find(|name| *name != leaving && is_up(name)).cloned().ok_or_else(|| {
        ControlError::conflict(format!("no other region is up to write in the place of '{leaving}'"))
    })
}

fn online(control: &Control, request: &ControlRequest) -> ControlResult {
    listed_region_in_path(control, request)?.up()?;
    regions_view(control)
}

fn begin_removal(control: &Control, request: &ControlRequest) -> ControlResult {
    let region = listed_region_in_path(control, request)?;
    let topology = control.account.regions.current();
    if topology.hub() == topology.find(region.name())? {
        return Err(TopologyError::IsWriteRegion(region.name().to_owned()).into());
    }
    drop(topology);
    region.drain()?;
    regions_view(control)
}

fn cancel_removal(control: &Control, request: &ControlRequest) -> ControlResult {
    end_draining(&listed_region_in_path(control, request)?)?;
    regions_view(control)
}

fn remove(control: &Control, request: &ControlRequest) -> ControlResult {
    let region = region_in_path(control, request)?;
    control.account.remove_region(region.name())?;
    region.drain()?;
    regions_view(control)
}

fn add(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    let name = request.segment(0);
    let known = control.account.regions.current().find(name).is_ok();
    if known {
        let region = control.faults.region(name)?;
        end_draining(&region)?;
        control.account.add_region(region.name())?;
    } else {
        control.servers.add_region(name)?;
    }
    regions_view(control)
}

impl From<AddRegionError> for ControlError {
    fn from(error: AddRegionError) -> ControlError {
        match error {
            AddRegionError::Topology(error) => error.into(),
            AddRegionError::Port(_) => ControlError::conflict(error.to_string()),
        }
    }
}

fn announce(control: &Control, request: &ControlRequest) -> ControlResult {
    control.account.announce_failover(region_in_path(control, request)?.name())?;
    regions_view(control)
}

fn begin(control: &Control, request: &ControlRequest) -> ControlResult {
    control.account.begin_failover(region_in_path(control, request)?.name())?;
    regions_view(control)
}

fn complete(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    control.account.complete_failover();
    regions_view(control)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Priorities {
    regions: Vec<String>,
}

fn priorities(control: &Control, request: &ControlRequest) -> ControlResult {
    let Priorities { regions } = request.body()?;
    control.account.set_failover_order(&regions)?;
    regions_view(control)
}

/// The region in the path, of a request without a body.
fn region_in_path(control: &Control, request: &ControlRequest) -> Result<RegionControl, ControlError> {
    let EmptyBody {} = request.body()?;
    Ok(control.faults.region(request.segment(0))?)
}

/// The region in the path, of a request without a body; an error if it was removed.
fn listed_region_in_path(control: &Control, request: &ControlRequest) -> Result<RegionControl, ControlError> {
    let region = region_in_path(control, request)?;
    let topology = control.account.regions.current();
    let id: RegionId = topology.find(region.name())?;
    if topology.is_listed(id) {
        Ok(region)
    } else {
        Err(TopologyError::Removed(region.name().to_owned()).into())
    }
}

fn end_draining(region: &RegionControl) -> Result<(), ControlError> {
    if region.health().is_some_and(|health| health.condition == RegionCondition::Draining) {
        region.up()?;
    }
    Ok(())
}
