//! Escaping of text that other people wrote, before it is shown on a terminal.
//!
//! Names, paths and messages come from clients and servers. A terminal obeys the control characters in them (colours,
//! cursor movements, the window title, the clipboard), and line ends or changes of direction make them look like output
//! of this program.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The text in one line, with every character escaped that a terminal would obey or that hides others.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escape(text, is_unsafe)
}

/// The text in its lines, with every other character escaped that a terminal would obey or that hides others.
pub(super) fn printable_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| character != '\n' && is_unsafe(character))
}

/// JSON text with the same characters escaped as JSON writes them, so that it means the same. They occur inside of
/// strings only.
pub(super) fn printable_json(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if !is_unsafe(character) {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    Cow::Owned(escaped)
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match is_escaped(character) {
            true => escaped.extend(character.escape_default()),
            false => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// Whether a terminal obeys a character, or shows it as nothing or as a line end.
fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' // Arabic letter mark
            | '\u{200b}' | '\u{200e}' | '\u{200f}' // zero width space, direction marks
            | '\u{2028}'..='\u{202e}' // line and paragraph separators, embeddings and overrides of direction
            | '\u{2060}'..='\u{206f}' // invisible operators, isolates of direction
            | '\u{feff}' // byte order mark
            | '\u{fff9}'..='\u{fffb}' // annotations
            | '\u{e0000}'..='\u{e0fff}' // tags
        )
}

/// Escapes what is written to a terminal, and leaves line ends and tabs.
#[derive(Debug)]
pub(crate) struct TerminalWriter<W> {
    inner: W,
    /// The beginning of a character whose rest has not been written yet.
    pending: Vec<u8>,
}

impl<W: Write> TerminalWriter<W> {
    pub(crate) fn new(inner: W) -> TerminalWriter<W> {
        TerminalWriter { inner, pending: Vec::new() }
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        let escaped = escape(text, |character| !matches!(character, '\n' | '\t') && is_unsafe(character));
        self.inner.write_all(escaped.as_bytes())
    }
}

impl<W: Write> Write for TerminalWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let mut chunks = pending.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.write_text(chunk.valid())?;
            let is_last = chunks.peek().is_none();
            // Up to three bytes at the end may be the beginning of a character.
            match chunk.invalid() {
                rest if is_last && rest.len() < 4 => self.pending = rest.to_vec(),
                [] => {}
                _ => self.write_text("\u{fffd}")?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_all_else_stays() {
        for (text, expected) in [
            ("plain text é 東 👩\u{200d}💻", "plain text é 東 👩\u{200d}💻"),
            ("a\u{1b}[31mb", "a\\u{1b}[31mb"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\r\nb\tc\u{7f}", "a\\r\\nb\\tc\\u{7f}"),
            ("\u{202e}txt.exe", "\\u{202e}txt.exe"),
            ("a\u{2028}b", "a\\u{2028}b"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_lines("a\nb\u{1b}"), "a\nb\\u{1b}");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({ "path": "\u{9b}2J\u{7f}\u{202e}\u{e0041}é\n" });
        let text = value.to_string();
        let escaped = printable_json(&text);
        assert_eq!(escaped, "{\"path\":\"\\u009b2J\\u007f\\u202e\\udb40\\udc41é\\n\"}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }

    #[test]
    fn characters_may_arrive_in_pieces() {
        let text = "id,name\n1,\u{9b}é\u{1b}\n";
        for size in 1..=text.len() {
            let mut writer = TerminalWriter::new(Vec::new());
            for piece in text.as_bytes().chunks(size) {
                writer.write_all(piece).unwrap();
            }
            assert_eq!(String::from_utf8(writer.inner).unwrap(), "id,name\n1,\\u{9b}é\\u{1b}\n", "{size}");
        }
    }
}
