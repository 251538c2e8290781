//! Regions that leave the account and come back, and failovers step by step.
//!
//! The names are those of the management surface that the Rust SDK's own tests are written against;
//! `switches` has the same troubles one by one.

use http::Method;
use serde::Deserialize;

use super::ask::Nothing;
use super::regions::shown;
use super::table::Route;
use super::{Answer, Ask, Control, Problem};
use crate::faults::{DownMode, RegionCondition, RegionControl};
use crate::regions::{RegionId, TopologyError};

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
        about: "list a removed region again, last in the failover order",
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

fn offline(control: &Control, ask: &Ask) -> Answer {
    let region = listed(control, ask)?;
    let topology = control.account.regions.current();
    if !topology.is_multi_write() && topology.hub() == topology.find(region.name())? {
        control.account.fail_over(&next_writer(control, region.name())?)?;
    }
    drop(topology);
    region.down(DownMode::Refused)?;
    shown(control)
}

/// The first region in failover order, other than `leaving`, with which nothing is wrong.
fn next_writer(control: &Control, leaving: &str) -> Result<String, Problem> {
    let topology = control.account.regions.current();
    let health = control.faults.regions();
    let is_up =
        |name: &String| health.get(name).is_some_and(|health| health.condition == RegionCondition::Up);
    let mut order = topology.failover_order().iter().map(|id| &topology.region(*id).name);
    order.find(|name| *name != leaving && is_up(name)).cloned().ok_or_else(|| {
        Problem::conflict(format!("no other region is up to write in the place of '{leaving}'"))
    })
}

fn online(control: &Control, ask: &Ask) -> Answer {
    listed(control, ask)?.up()?;
    shown(control)
}

fn begin_removal(control: &Control, ask: &Ask) -> Answer {
    let region = listed(control, ask)?;
    let topology = control.account.regions.current();
    if topology.hub() == topology.find(region.name())? {
        return Err(TopologyError::Writes(region.name().to_owned()).into());
    }
    drop(topology);
    region.drain()?;
    shown(control)
}

fn cancel_removal(control: &Control, ask: &Ask) -> Answer {
    end_draining(&listed(control, ask)?)?;
    shown(control)
}

fn remove(control: &Control, ask: &Ask) -> Answer {
    let region = named(control, ask)?;
    control.account.remove_region(region.name())?;
    region.drain()?;
    shown(control)
}

fn add(control: &Control, ask: &Ask) -> Answer {
    let region = named(control, ask)?;
    end_draining(&region)?;
    control.account.add_region(region.name())?;
    shown(control)
}

fn announce(control: &Control, ask: &Ask) -> Answer {
    control.account.announce_failover(named(control, ask)?.name())?;
    shown(control)
}

fn begin(control: &Control, ask: &Ask) -> Answer {
    control.account.begin_failover(named(control, ask)?.name())?;
    shown(control)
}

fn complete(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    control.account.complete_failover();
    shown(control)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Priorities {
    regions: Vec<String>,
}

fn priorities(control: &Control, ask: &Ask) -> Answer {
    let Priorities { regions } = ask.body()?;
    control.account.set_failover_order(&regions)?;
    shown(control)
}

/// The region in the path, of a request that says nothing more.
fn named(control: &Control, ask: &Ask) -> Result<RegionControl, Problem> {
    let Nothing {} = ask.body()?;
    Ok(control.faults.region(ask.segment(0))?)
}

/// The same, if it was not removed.
fn listed(control: &Control, ask: &Ask) -> Result<RegionControl, Problem> {
    let region = named(control, ask)?;
    let topology = control.account.regions.current();
    let id: RegionId = topology.find(region.name())?;
    if topology.is_listed(id) {
        Ok(region)
    } else {
        Err(TopologyError::Removed(region.name().to_owned()).into())
    }
}

fn end_draining(region: &RegionControl) -> Result<(), Problem> {
    if region.health().is_some_and(|health| health.condition == RegionCondition::Draining) {
        region.up()?;
    }
    Ok(())
}
