//! `/health/live` and `/health/ready`.

use http::Method;
use serde_json::json;

use super::table::Route;
use super::{Answer, Ask, Control};

pub(super) const ROUTES: &[Route] = &[
    Route { method: Method::GET, path: "/health/live", about: "the process answers", handle: live },
    Route { method: Method::GET, path: "/health/ready", about: "the account answers too", handle: ready },
];

fn live(_: &Control, _: &Ask) -> Answer {
    super::json(&json!({ "status": "live" }))
}

/// The control port opens after the account.
fn ready(_: &Control, _: &Ask) -> Answer {
    super::json(&json!({ "status": "ready" }))
}
