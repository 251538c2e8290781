//! `/health/live` and `/health/ready`: liveness and readiness of the account.

use http::{Method, StatusCode};
use serde_json::json;

use super::routes::Route;
use super::{Control, ControlRequest, ControlResult};
use engine::disk::DataDirHealth;

pub(super) const ROUTES: &[Route] = &[
    Route { method: Method::GET, path: "/health/live", about: "the process answers", handle: live },
    Route { method: Method::GET, path: "/health/ready", about: "the account answers too", handle: ready },
];

fn live(_: &Control, _: &ControlRequest) -> ControlResult {
    super::json(&json!({ "status": "live" }))
}

/// The control port opens after the account, so the account is ready. With a data directory, its state is
/// included; so are the counts of requests by encoding and by consistency level.
fn ready(control: &Control, _: &ControlRequest) -> ControlResult {
    let requests = control.request_log.forms.to_json();
    let Some(disk) = &control.account.disk else {
        return super::json(&json!({ "status": "ready", "requests": requests }));
    };
    let DataDirHealth {
        path,
        truncated_tail: torn,
        write_error,
        is_broken,
        checkpoint_error: settling,
        damaged_items,
    } = disk.health();
    let data = json!({
        "path": path.display().to_string(),
        "writable": write_error.is_none(),
        "cutOff": torn,
        "problem": write_error.or(settling),
        "damagedItems": damaged_items,
    });
    // A write that failed, on a full disk for instance, may succeed the next time. A journal that could not be
    // synced takes no more writes, so nothing should be sent here until it is restarted.
    match is_broken {
        true => super::response::json_with(
            StatusCode::SERVICE_UNAVAILABLE,
            &json!({ "status": "takes no writes", "data": data, "requests": requests }),
        ),
        false => super::json(&json!({ "status": "ready", "data": data, "requests": requests })),
    }
}
