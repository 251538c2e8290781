//! `peri snapshot`: ask, or change and show the snapshots there are then.

use serde_json::{Value, json};

use crate::arguments::{Snapshot, SnapshotAction};
use crate::control::{ControlPort, escaped, list, text};
use crate::exit::Failure;
use crate::output::Table;

/// Does what was asked and shows the snapshots there are afterwards.
pub(crate) fn run(snapshot: &Snapshot) -> Result<(), Failure> {
    let port = ControlPort::of(&snapshot.control)?;
    let path = |name: &str| format!("/snapshots/{}", escaped(name));
    let (answer, said) = match &snapshot.action {
        SnapshotAction::List => (port.get("/snapshots")?, None),
        SnapshotAction::Save { name } => {
            (port.post(&path(name), &json!({}))?, Some(format!("saved '{name}'")))
        }
        SnapshotAction::Restore { name } => {
            let answer = port.post(&format!("{}/restore", path(name)), &json!({}))?;
            (answer, Some(format!("the account is as it was in '{name}'")))
        }
        SnapshotAction::Rm { name } => (port.delete(&path(name))?, Some(format!("removed '{name}'"))),
    };
    port.show(&answer, |answer| said.unwrap_or_else(|| table(&answer["snapshots"]).to_string()));
    Ok(())
}

fn table(snapshots: &Value) -> Table {
    let mut table = Table::new(&["SNAPSHOT", "TAKEN", "CONTAINERS", "ITEMS"]);
    for snapshot in list(snapshots) {
        table.row(["name", "takenAt", "containers", "items"].map(|member| text(&snapshot[member])).to_vec());
    }
    table
}
