//! `/regions`: lists the regions, sets replication lag, pauses and resumes replication.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::request::EmptyBody;
use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult, topology};
use engine::regions::{Lag, TopologyError};

pub(super) const ROUTES: &[Route] = &[
    Route { method: Method::GET, path: "/regions", about: "the regions, in failover order", handle: list },
    Route {
        method: Method::POST,
        path: "/regions/lag",
        about: r#"how long commits take {"lag":"20ms..50ms","from":"West US","to":"East US"}; an end left out means all"#,
        handle: lag,
    },
    Route {
        method: Method::POST,
        path: "/regions/{region}/replication/pause",
        about: "keep everything new from a region",
        handle: pause,
    },
    Route {
        method: Method::POST,
        path: "/regions/{region}/replication/resume",
        about: "let it catch up",
        handle: resume,
    },
];

fn list(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    regions_view(control)
}

/// The response of every route here.
pub(super) fn regions_view(control: &Control) -> ControlResult {
    super::json(&json!({ "regions": topology::regions(control) }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetLag {
    lag: String,
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    to: Option<String>,
}

fn lag(control: &Control, request: &ControlRequest) -> ControlResult {
    let SetLag { lag, from, to } = request.body()?;
    let lag: Lag = lag.parse().map_err(|error| ControlError::bad_request(format!("{error}")))?;
    control.account.set_lag(from.as_deref(), to.as_deref(), lag)?;
    regions_view(control)
}

fn pause(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    control.account.pause_replication(request.segment(0), control.clock.uptime())?;
    regions_view(control)
}

fn resume(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    control.account.resume_replication(request.segment(0), control.clock.uptime())?;
    regions_view(control)
}

impl From<TopologyError> for ControlError {
    fn from(error: TopologyError) -> ControlError {
        let message = error.to_string();
        match error {
            TopologyError::Unknown { .. } => ControlError::not_found(message),
            TopologyError::NothingToFailOver
            | TopologyError::NoPartitionFailover
            | TopologyError::IsWriteRegion(_)
            | TopologyError::ReplicationPaused(_)
            | TopologyError::Removed(_) => ControlError::conflict(message),
            TopologyError::NotPersisted(_) => ControlError::unavailable(message),
            _ => ControlError::bad_request(message),
        }
    }
}
