//! `peri completions`: prints the completion script of a shell.

use std::io::Write as _;

use clap::CommandFactory as _;

use crate::arguments::{Arguments, Completions};
use crate::exit::CommandError;

/// Prints the script on stdout.
pub(crate) fn run(completions: &Completions) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "peri", &mut script);
    // As it is: the tabs in it are part of the script.
    let written = std::io::stdout().lock().write_all(&script);
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CommandError::other(format!("stdout cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
