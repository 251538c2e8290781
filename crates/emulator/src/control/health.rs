//! `/health/live` and `/health/ready`.

use http::Method;
use serde_json::json;

use super::table::Route;
use super::{Answer, Ask, Control};
use engine::disk::DataDirHealth;

pub(super) const ROUTES: &[Route] = &[
    Route { method: Method::GET, path: "/health/live", about: "the process answers", handle: live },
    Route { method: Method::GET, path: "/health/ready", about: "the account answers too", handle: ready },
];

fn live(_: &Control, _: &Ask) -> Answer {
    super::json(&json!({ "status": "live" }))
}

/// The control port opens after the account. Whoever keeps it in a directory learns how that is.
fn ready(control: &Control, _: &Ask) -> Answer {
    let Some(disk) = &control.account.disk else { return super::json(&json!({ "status": "ready" })) };
    let DataDirHealth { path, truncated_tail: torn, write_error: broken, checkpoint_error: settling } =
        disk.health();
    let data = json!({
        "path": path.display().to_string(),
        "writable": broken.is_none(),
        "cutOff": torn,
        "problem": broken.or(settling),
    });
    super::json(&json!({ "status": "ready", "data": data }))
}
