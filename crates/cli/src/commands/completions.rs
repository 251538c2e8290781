//! `peri completions`: prints the completion script of a shell.

use clap::CommandFactory as _;

use crate::arguments::{Arguments, Completions};
use crate::exit::CommandError;
use crate::output;

/// Prints the script on stdout.
pub(crate) fn run(completions: &Completions) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "peri", &mut script);
    let script = String::from_utf8(script)
        .map_err(|error| CommandError::other(format!("the script is not text: {error}")))?;
    output::data(script.trim_end());
    Ok(())
}
