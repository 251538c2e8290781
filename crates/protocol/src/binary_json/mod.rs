//! Cosmos binary JSON: the compact form in which some clients send and take items.
//!
//! In and out: bytes. The Rust client writes item bodies in it by default and labels them
//! `application/json`; only the first byte tells. [`to_text`] reads every marker the format has,
//! and trusts nothing: lengths are checked, nesting and output are bounded. [`from_text`] writes
//! the plain subset that the Rust client writes and every reader knows.

mod decode; // binary → text
mod encode; // text → binary
mod markers; // the first byte of every value
mod strings; // the many ways to write a string
mod text; // JSON text, written

pub use decode::{BinaryJsonError, BinaryJsonErrorKind, to_text};
pub use encode::from_text;

/// How deep values may be nested, in either form.
pub const NESTING_MAX: usize = 128;

/// Whether a body is binary: its first byte could not start JSON text.
pub fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&markers::FORMAT)
}

#[cfg(test)]
mod tests;
