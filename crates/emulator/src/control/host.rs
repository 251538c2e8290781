//! `/account`, `/capabilities` and `/health`: what scripted test suites query first.

use http::Method;
use serde_json::{Value, json};

use super::routes::Route;
use super::{Control, ControlRequest, ControlResult};

pub(super) const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/account",
        about: "its regions, which of them writes, and which are listed as writable",
        handle: account,
    },
    Route {
        method: Method::GET,
        path: "/capabilities",
        about: "what the account and this port can do, by name",
        handle: capabilities,
    },
    Route { method: Method::GET, path: "/health", about: "the account answers", handle: health },
];

/// The data plane features of the account.
const DATA_PLANE: &[&str] =
    &["database", "container", "item", "patch", "query", "changeFeed", "transactionalBatch", "bulk"];
/// The management actions of the control port.
const MANAGEMENT: &[&str] =
    &["regionLifecycle", "writeRegionFailover", "replicationPauseResume", "partitionSplit", "partitionMerge"];

fn account(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    let topology = control.account.regions.current();
    let regions = topology.failover_order().iter().map(|id| {
        let region = topology.region(*id);
        let writable = topology.takes_item_writes(*id) || topology.also_writable() == Some(*id);
        json!({
            "name": region.name,
            "endpoint": control.advertised_hosts.region_url("http", &region.name, region.port),
            "writable": writable,
        })
    });
    super::json(&json!({
        "id": control.account.name,
        "endpoint": control.account_endpoint(),
        "consistency": topology.consistency.name(),
        "writeMode": if topology.is_multi_write() { "multi" } else { "single" },
        "writeRegion": topology.region(topology.hub()).name,
        "regions": regions.collect::<Vec<Value>>(),
    }))
}

fn capabilities(_: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    super::json(&json!({
        "apiVersion": 1,
        "emulatorVersion": env!("CARGO_PKG_VERSION"),
        "protocols": { "gatewayV1": true, "gatewayV2": false },
        "dataPlane": DATA_PLANE,
        "managementActions": MANAGEMENT,
    }))
}

fn health(_: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    super::json(&json!({
        "status": "ready",
        "gateway20Enabled": false,
        "connectivityProbes": 0,
        "gateway20Requests": 0,
    }))
}
