//! HybridRow records: the binary encoding in which the .NET SDK sends batches and reads their results.
//!
//! Input and output: bytes. A body is a segment header and then records, each a row with its length and
//! checksum. A row has fixed fields, variable fields and sparse fields, as its [`Layout`] says. Readers do not
//! trust their input: every length is checked against what is left, and nothing is allocated by a length that
//! the input states. What the fields of a row mean is left to the caller.

mod bytes; // integers and lengths, one after the other
mod record_io; // segment header, records, checksums
mod row; // fields of one row

pub use record_io::{RecordWriter, read_records};
pub use row::{Layout, Row, RowWriter, SparseValue};

use thiserror::Error;

/// The first byte of a body and of every row: version 1 of the format.
const VERSION: u8 = 0x81;

/// Whether a body consists of HybridRow records: its first byte can start neither JSON text nor binary JSON.
pub fn is_hybrid_row(body: &[u8]) -> bool {
    body.first() == Some(&VERSION)
}

/// The error of a body that is not a sequence of valid records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HybridRowError {
    /// The body ends within a header, a row or a field.
    #[error("it ends too early")]
    Truncated,
    /// A row begins with another version of the format.
    #[error("0x{0:02x} is not a known version")]
    UnknownVersion(u8),
    /// A row has a schema that does not belong at its place.
    #[error("schema {0} is not expected here")]
    UnknownSchema(i32),
    /// A length is negative, or smaller than what it has to cover.
    #[error("{0} is not a valid length")]
    InvalidLength(i64),
    /// A length or a field number has too many bytes.
    #[error("an integer of variable length has too many bytes")]
    InvalidInteger,
    /// The checksum of a record is not that of its row.
    #[error("the checksum of record {0} does not match")]
    Checksum(usize),
    /// A sparse field has a type that is not known.
    #[error("0x{0:02x} is not a known type")]
    UnknownType(u8),
    /// A text field is not UTF-8.
    #[error("a text is not UTF-8")]
    InvalidText,
    /// A field that every row of the schema has is missing, or has an unknown value.
    #[error("the field '{0}' is missing or invalid")]
    InvalidField(&'static str),
}

#[cfg(test)]
mod tests;
