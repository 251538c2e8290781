//! `/snapshots`: copies of the whole account, to come back to.

use http::Method;
use serde_json::{Value, json};

use super::ask::Nothing;
use super::table::Route;
use super::{Answer, Ask, Control, Problem};
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

fn list(control: &Control, ask: &Ask) -> Answer {
    ask.only(&[])?;
    shown(control)
}

/// What every route here answers.
fn shown(control: &Control) -> Answer {
    let snapshots: Vec<Value> = control.account.list_snapshots().iter().map(shown_one).collect();
    super::json(&json!({ "snapshots": snapshots }))
}

fn shown_one(snapshot: &SnapshotSummary) -> Value {
    json!({
        "name": snapshot.name,
        "takenAt": snapshot.taken_at.to_string(),
        "containers": snapshot.containers,
        "items": snapshot.items,
    })
}

fn save(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    control.account.save_snapshot(ask.segment(0), control.clock.now())?;
    shown(control)
}

fn restore(control: &Control, ask: &Ask) -> Answer {
    let Nothing {} = ask.body()?;
    control.account.restore_snapshot(ask.segment(0))?;
    shown(control)
}

fn remove(control: &Control, ask: &Ask) -> Answer {
    ask.only(&[])?;
    control.account.remove_snapshot(ask.segment(0))?;
    shown(control)
}

impl From<SnapshotError> for Problem {
    fn from(error: SnapshotError) -> Problem {
        let message = error.to_string();
        match error {
            SnapshotError::Unknown(_) => Problem::not_found(message),
            SnapshotError::TooMany => Problem::conflict(message),
            SnapshotError::NotPersisted(_) => Problem::unavailable(message),
            _ => Problem::bad_request(message),
        }
    }
}
