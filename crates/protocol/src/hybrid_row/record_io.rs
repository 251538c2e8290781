//! Records: a segment header, and then rows, each with its length and its checksum.

use super::bytes::Bytes;
use super::{HybridRowError, VERSION};

/// The schema of the segment header.
const SEGMENT: i32 = 2_147_473_648;
/// The schema of a record header.
const RECORD: i32 = 2_147_473_649;
/// Bytes of a segment header without optional fields: version, schema, presence byte and length.
const SEGMENT_BYTES: usize = 10;
/// The presence bit of the length in a segment header.
const HAS_LENGTH: u8 = 1;

/// Reads the rows of a body in their order. After an error there are no more.
pub fn read_records(body: &[u8]) -> impl Iterator<Item = Result<&[u8], HybridRowError>> {
    let mut rest = Bytes(body);
    let mut number = 0;
    let mut segment = Some(());
    let mut done = false;
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let mut next = || {
            if segment.take().is_some() {
                read_segment_header(&mut rest)?;
            }
            if rest.0.is_empty() {
                return Ok(None);
            }
            let row = read_record(&mut rest, number)?;
            number += 1;
            Ok(Some(row))
        };
        let row = next().transpose();
        done = !matches!(row, Some(Ok(_)));
        row
    })
}

fn read_segment_header(rest: &mut Bytes<'_>) -> Result<(), HybridRowError> {
    read_start(rest, SEGMENT)?;
    let presence = rest.u8()?;
    if presence & HAS_LENGTH == 0 {
        return Err(HybridRowError::InvalidField("length"));
    }
    let length = rest.i32()?;
    // A longer header has optional fields, which say nothing about the records.
    let optional = usize::try_from(length).ok().and_then(|length| length.checked_sub(SEGMENT_BYTES));
    rest.take(optional.ok_or(HybridRowError::InvalidLength(length.into()))?)?;
    Ok(())
}

fn read_record<'a>(rest: &mut Bytes<'a>, number: usize) -> Result<&'a [u8], HybridRowError> {
    read_start(rest, RECORD)?;
    let length = rest.i32()?;
    let checksum = rest.u32()?;
    let length = usize::try_from(length).map_err(|_| HybridRowError::InvalidLength(length.into()))?;
    let row = rest.take(length)?;
    if crc32fast::hash(row) == checksum { Ok(row) } else { Err(HybridRowError::Checksum(number)) }
}

/// Reads the version and the schema that every row begins with.
fn read_start(rest: &mut Bytes<'_>, expected: i32) -> Result<(), HybridRowError> {
    match rest.u8()? {
        VERSION => {}
        other => return Err(HybridRowError::UnknownVersion(other)),
    }
    match rest.i32()? {
        schema if schema == expected => Ok(()),
        other => Err(HybridRowError::UnknownSchema(other)),
    }
}

/// A body of records under construction.
#[derive(Debug)]
pub struct RecordWriter {
    body: Vec<u8>,
}

impl RecordWriter {
    /// A body without records, with capacity for about `bytes`.
    pub fn with_capacity(bytes: usize) -> RecordWriter {
        let mut body = Vec::with_capacity(bytes + SEGMENT_BYTES);
        write_start(SEGMENT, &mut body);
        body.push(HAS_LENGTH);
        body.extend_from_slice(&(SEGMENT_BYTES as i32).to_le_bytes());
        RecordWriter { body }
    }

    /// Appends a row as one record.
    ///
    /// # Panics
    ///
    /// If the row has more than 2 GB.
    pub fn push(&mut self, row: &[u8]) {
        let length = i32::try_from(row.len()).expect("a row is smaller than 2 GB");
        write_start(RECORD, &mut self.body);
        self.body.extend_from_slice(&length.to_le_bytes());
        self.body.extend_from_slice(&crc32fast::hash(row).to_le_bytes());
        self.body.extend_from_slice(row);
    }

    /// The complete body with all records.
    pub fn finish(self) -> Vec<u8> {
        self.body
    }
}

fn write_start(schema: i32, out: &mut Vec<u8>) {
    out.push(VERSION);
    out.extend_from_slice(&schema.to_le_bytes());
}
