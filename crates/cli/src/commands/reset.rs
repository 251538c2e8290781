//! `peri reset`: deletes all databases of a running account, after a confirmation.

use serde_json::{Value, json};

use crate::arguments::Reset;
use crate::confirmation::confirm;
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;

/// Asks unless `--yes` was given, and deletes.
pub(crate) fn run(reset: &Reset) -> Result<(), CommandError> {
    let port = ControlPort::of(&reset.control)?;
    if !reset.yes && !confirmed(&port)? {
        return Err(CommandError::other("nothing was deleted".to_owned()));
    }
    let response = port.post("/reset", &json!({}))?;
    port.show(&response, summary);
    Ok(())
}

/// Asks on the terminal, with the number of databases.
fn confirmed(port: &ControlPort) -> Result<bool, CommandError> {
    confirm("all databases", || {
        let topology = port.get("/topology")?;
        let count = list(&topology["databases"]).len();
        Ok(format!("Delete all {count} databases of the account?"))
    })
}

fn summary(response: &Value) -> String {
    match list(&response["deleted"]) {
        [] => "there were no databases".to_owned(),
        deleted => format!("deleted: {}", deleted.iter().map(text).collect::<Vec<_>>().join(", ")),
    }
}
