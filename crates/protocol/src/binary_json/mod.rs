//! Cosmos binary JSON, the compact encoding of item bodies.
//!
//! Input and output: bytes. The Rust client writes item bodies in it by default and labels them
//! `application/json`; only the first byte tells the encodings apart. [`to_text`] reads every marker of the
//! format and does not trust its input: lengths are checked, nesting and output are limited. [`from_text`]
//! writes the subset that the Rust client writes and every reader knows.

mod decode; // binary → text
mod encode; // text → binary
mod markers; // type markers
mod strings; // encodings of strings
mod text; // writing JSON strings

pub use decode::{BinaryJsonError, BinaryJsonErrorKind, to_text};
pub use encode::from_text;

/// The deepest nesting of arrays and objects, in either encoding: 128 levels of an item, and the feed around it.
pub const NESTING_MAX: usize = 130;

/// Whether a body is binary JSON: its first byte cannot start JSON text.
pub fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&markers::FORMAT)
}

#[cfg(test)]
mod tests;
