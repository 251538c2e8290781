//! Questions before something is deleted.

use std::io::{BufRead as _, IsTerminal as _};

use crate::exit::CommandError;
use crate::output;

/// Asks on the terminal. Without one nobody can answer, so `--yes` is required; `effect` says what for.
pub(crate) fn confirm(
    effect: &str,
    question: impl FnOnce() -> Result<String, CommandError>,
) -> Result<bool, CommandError> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(CommandError::usage(format!(
            "this deletes {effect}, and there is no terminal to ask on"
        ))
        .hint("--yes deletes them without asking"));
    }
    output::message(&format!("{} Type yes to do so:", question()?));
    let mut answer = String::new();
    stdin
        .lock()
        .read_line(&mut answer)
        .map_err(|error| CommandError::other(format!("cannot read the answer: {error}")))?;
    Ok(answer.trim().eq_ignore_ascii_case("yes"))
}
