//! The output of commands: data on stdout, everything else on stderr.

mod banner;
mod progress;
mod reader;
mod ready;
mod table;

pub(crate) use banner::Banner;
pub(crate) use progress::{Progress, items};
pub(crate) use reader::wait_while_read;
pub(crate) use ready::ReadyLine;
pub(crate) use table::Table;

use std::io::Write as _;

/// Writes one block of data to stdout, with a line end, and flushes it.
///
/// A closed pipe is no error: `peri up` continues to serve after the reader of its ready line has gone.
pub(crate) fn data(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    if let Err(error) = written {
        tracing::debug!(%error, "stdout is closed");
    }
}

/// Writes one line to stderr.
pub(crate) fn message(text: &str) {
    // There is no other place to report that stderr is closed.
    let _closed = writeln!(std::io::stderr().lock(), "{text}");
}
