//! The output of commands: data on stdout, everything else on stderr.

mod banner;
mod escape;
mod progress;
mod reader;
mod ready;
mod table;

pub(crate) use banner::Banner;
pub(crate) use escape::{TerminalWriter, printable};
pub(crate) use progress::{Progress, items};
pub(crate) use reader::wait_while_read;
pub(crate) use ready::ReadyLine;
pub(crate) use table::{Table, terminal_width};

use std::io::Write as _;

use serde_json::Value;

/// Writes one block of data to stdout, with a line end, and flushes it.
///
/// A closed pipe is no error: `peri up` continues to serve after the reader of its ready line has gone.
pub(crate) fn data(text: &str) {
    write_data(&escape::printable_lines(text));
}

/// Writes a value as one line of JSON to stdout, and flushes it.
pub(crate) fn json(value: &Value) {
    json_text(&value.to_string());
}

/// Writes a line of JSON to stdout, and flushes it. Characters that a terminal obeys are escaped.
pub(crate) fn json_text(text: &str) {
    write_data(&escape::printable_json(text));
}

fn write_data(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
    if let Err(error) = written {
        tracing::debug!(%error, "stdout is closed");
    }
}

/// Writes one line to stderr. Line ends in the text are escaped: parts of it may be other people's.
pub(crate) fn message(text: &str) {
    // There is no other place to report that stderr is closed.
    let _closed = writeln!(std::io::stderr().lock(), "{}", printable(text));
}
