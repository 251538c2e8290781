//! `peri snapshot`: lists, saves, restores and deletes snapshots.

use control_client::escape;
use serde_json::{Value, json};

use crate::arguments::{Snapshot, SnapshotAction};
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;
use crate::output::Table;

/// Runs the command and shows its result.
pub(crate) fn run(snapshot: &Snapshot) -> Result<(), CommandError> {
    let port = ControlPort::of(&snapshot.control)?;
    let path = |name: &str| format!("/snapshots/{}", escape(name));
    let (response, message) = match &snapshot.action {
        SnapshotAction::List => (port.get("/snapshots")?, None),
        SnapshotAction::Save { name } => {
            (port.post(&path(name), &json!({}))?, Some(format!("saved '{name}'")))
        }
        SnapshotAction::Restore { name } => {
            let response = port.post(&format!("{}/restore", path(name)), &json!({}))?;
            (response, Some(format!("restored '{name}'")))
        }
        SnapshotAction::Rm { name } => (port.delete(&path(name))?, Some(format!("removed '{name}'"))),
    };
    port.show(&response, |response| message.unwrap_or_else(|| table(&response["snapshots"]).to_string()));
    Ok(())
}

fn table(snapshots: &Value) -> Table {
    let mut table = Table::new(&["SNAPSHOT", "TAKEN", "CONTAINERS", "ITEMS"]);
    for snapshot in list(snapshots) {
        table.row(["name", "takenAt", "containers", "items"].map(|member| text(&snapshot[member])).to_vec());
    }
    table
}
