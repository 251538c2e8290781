//! What is shown: data on stdout, everything else on stderr.

mod banner;
mod progress;
mod ready;
mod table;

pub(crate) use banner::Banner;
pub(crate) use progress::{Progress, items};
pub(crate) use ready::ReadyLine;
pub(crate) use table::Table;

use std::io::Write as _;

/// Writes one block of data, with a line end, and flushes it.
///
/// A reader that closed the pipe has seen what it wanted; that is no reason to stop serving.
pub(crate) fn data(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    if let Err(error) = written {
        tracing::debug!(%error, "stdout takes no more");
    }
}

/// Writes one line for a person.
pub(crate) fn message(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
