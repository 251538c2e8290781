//! `/snapshots`: named copies of the whole account that can be restored.

use http::Method;
use serde_json::{Value, json};

use super::request::EmptyBody;
use super::routes::Route;
use super::{Control, ControlError, ControlRequest, ControlResult};
use engine::account::snapshots::{SnapshotError, SnapshotSummary};

pub(super) const ROUTES: &[Route] = &[
    Route { method: Method::GET, path: "/snapshots", about: "the snapshots there are", handle: list },
    Route {
        method: Method::POST,
        path: "/snapshots/{name}",
        about: "keep the whole account as it is under a name, in the place of what was there",
        handle: save,
    },
    Route {
        method: Method::POST,
        path: "/snapshots/{name}/restore",
        about: "make the whole account as it was",
        handle: restore,
    },
    Route { method: Method::DELETE, path: "/snapshots/{name}", about: "forget one", handle: remove },
];

fn list(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    snapshots_view(control)
}

/// The response of every route here.
fn snapshots_view(control: &Control) -> ControlResult {
    let snapshots: Vec<Value> = control.account.list_snapshots().iter().map(snapshot_view).collect();
    super::json(&json!({ "snapshots": snapshots }))
}

fn snapshot_view(snapshot: &SnapshotSummary) -> Value {
    json!({
        "name": snapshot.name,
        "takenAt": snapshot.taken_at.to_string(),
        "containers": snapshot.containers,
        "items": snapshot.items,
    })
}

fn save(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    control.account.save_snapshot(request.segment(0), control.clock.now())?;
    snapshots_view(control)
}

fn restore(control: &Control, request: &ControlRequest) -> ControlResult {
    let EmptyBody {} = request.body()?;
    control.account.restore_snapshot(request.segment(0))?;
    snapshots_view(control)
}

fn remove(control: &Control, request: &ControlRequest) -> ControlResult {
    request.allow_parameters(&[])?;
    control.account.remove_snapshot(request.segment(0))?;
    snapshots_view(control)
}

impl From<SnapshotError> for ControlError {
    fn from(error: SnapshotError) -> ControlError {
        let message = error.to_string();
        match error {
            SnapshotError::Unknown(_) => ControlError::not_found(message),
            SnapshotError::TooMany => ControlError::conflict(message),
            SnapshotError::NotPersisted(_) => ControlError::unavailable(message),
            _ => ControlError::bad_request(message),
        }
    }
}
