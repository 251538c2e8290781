//! `/regions`: how far apart they are, and whether anything reaches them.

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::ask::Nothing;
use super::table::Route;
use super::{Answer, Ask, Control, Problem, topology};
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

fn list(control: &Control, ask: &Ask) -> Answer {
    ask.only(&[])?;
    shown(control)
}

/// What every route here answers.
pub(super) fn shown(control: &Control) -> Answer {
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

fn lag(control: &Control, ask: &Ask) -> Answer {
    let SetLag { lag, from, to } = ask.body()?;
    let lag: Lag = lag.parse().map_err(|error| Problem::bad_request(format!("{error}")))?;
    control.account.set_lag(from.as_deref(), to.as_deref(), lag)?;
    shown(control)
}

fn pause(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    control.account.pause_replication(ask.segment(0), control.clock.uptime())?;
    shown(control)
}

fn resume(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    control.account.resume_replication(ask.segment(0), control.clock.uptime())?;
    shown(control)
}

impl From<TopologyError> for Problem {
    fn from(error: TopologyError) -> Problem {
        let message = error.to_string();
        match error {
            TopologyError::Unknown { .. } => Problem::not_found(message),
            TopologyError::NothingToFailOver
            | TopologyError::NoPartitionFailover
            | TopologyError::IsWriteRegion(_)
            | TopologyError::Removed(_) => Problem::conflict(message),
            TopologyError::NotPersisted(_) => Problem::unavailable(message),
            _ => Problem::bad_request(message),
        }
    }
}
