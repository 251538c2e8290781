//! `peri reset`: deletes all databases of a running account, after a confirmation.

use std::io::{BufRead as _, IsTerminal as _};

use serde_json::{Value, json};

use crate::arguments::Reset;
use crate::control::{ControlPort, list, text};
use crate::exit::CommandError;
use crate::output;

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

/// Asks on the terminal. Without one nobody can answer, so `--yes` is required.
fn confirmed(port: &ControlPort) -> Result<bool, CommandError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CommandError::usage(
            "this deletes all databases, and there is no terminal to ask on".to_owned(),
        )
        .hint("--yes deletes them without asking"));
    }
    let topology = port.get("/topology")?;
    let count = list(&topology["databases"]).len();
    output::message(&format!("Delete all {count} databases of the account? Type yes to do so:"));
    let mut answer = String::new();
    stdin
        .lock()
        .read_line(&mut answer)
        .map_err(|error| CommandError::other(format!("cannot read the answer: {error}")))?;
    Ok(answer.trim().eq_ignore_ascii_case("yes"))
}

fn summary(response: &Value) -> String {
    match list(&response["deleted"]) {
        [] => "there were no databases".to_owned(),
        deleted => format!("deleted: {}", deleted.iter().map(text).collect::<Vec<_>>().join(", ")),
    }
}
