//! The fields of one row.
//!
//! A presence byte says which fixed and variable fields a row has. Fixed fields are 32-bit integers and take
//! their bytes in any case; a variable field takes bytes only if it is present. Sparse fields follow to the end
//! of the row, each with its type and its number.

use super::bytes::{Bytes, write_counted, write_varuint};
use super::{HybridRowError, VERSION};

/// The fields that every row of a schema has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number of the schema, at the beginning of each row.
    pub schema: i32,
    /// How many fixed fields there are, all 32-bit integers.
    pub fixed: usize,
    /// How many variable fields there are; with the fixed ones not more than eight.
    pub variable: usize,
}

/// Fixed and variable fields that one presence byte has bits for.
const FIELDS_MAX: usize = 8;

/// A row whose fields were read.
#[derive(Clone, Debug, PartialEq)]
pub struct Row<'a> {
    fixed: [Option<i32>; FIELDS_MAX],
    variable: [Option<&'a [u8]>; FIELDS_MAX],
    sparse: Vec<(u64, SparseValue<'a>)>,
}

/// The value of a sparse field.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum SparseValue<'a> {
    Bool(bool),
    Int32(i32),
    UInt32(u32),
    Float64(f64),
    Text(&'a str),
    Binary(&'a [u8]),
}

const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const INT32: u8 = 0x07;
const UINT32: u8 = 0x0B;
const FLOAT64: u8 = 0x10;
const UTF8: u8 = 0x14;
const BINARY: u8 = 0x15;

impl<'a> Row<'a> {
    /// Reads a row of `layout`.
    ///
    /// Cost: one pass; allocates the list of sparse fields, if there are any.
    pub fn read(bytes: &'a [u8], layout: Layout) -> Result<Row<'a>, HybridRowError> {
        debug_assert!(layout.fixed + layout.variable <= FIELDS_MAX, "one presence byte has eight bits");
        let mut rest = Bytes(bytes);
        match rest.u8()? {
            VERSION => {}
            other => return Err(HybridRowError::UnknownVersion(other)),
        }
        match rest.i32()? {
            schema if schema == layout.schema => {}
            other => return Err(HybridRowError::UnknownSchema(other)),
        }
        let presence = rest.u8()?;
        let is_present = |field: usize| presence >> field & 1 == 1;
        let mut row = Row { fixed: [None; FIELDS_MAX], variable: [None; FIELDS_MAX], sparse: Vec::new() };
        for (at, field) in row.fixed.iter_mut().take(layout.fixed).enumerate() {
            let value = rest.i32()?;
            *field = is_present(at).then_some(value);
        }
        for (at, field) in row.variable.iter_mut().take(layout.variable).enumerate() {
            if is_present(layout.fixed + at) {
                *field = Some(rest.counted()?);
            }
        }
        while !rest.0.is_empty() {
            row.sparse.push(read_sparse(&mut rest)?);
        }
        Ok(row)
    }

    /// The fixed field at this index of the fixed fields.
    pub fn fixed(&self, index: usize) -> Option<i32> {
        self.fixed.get(index).copied().flatten()
    }

    /// The variable field at this index of the variable fields.
    pub fn variable(&self, index: usize) -> Option<&'a [u8]> {
        self.variable.get(index).copied().flatten()
    }

    /// A variable field that is text.
    pub fn variable_text(&self, index: usize) -> Result<Option<&'a str>, HybridRowError> {
        self.variable(index).map(text).transpose()
    }

    /// The sparse field with this number, counted from 1 over all fields of the schema.
    pub fn sparse(&self, number: u64) -> Option<SparseValue<'a>> {
        self.sparse.iter().rev().find(|(of_field, _)| *of_field == number).map(|(_, value)| *value)
    }
}

fn read_sparse<'a>(rest: &mut Bytes<'a>) -> Result<(u64, SparseValue<'a>), HybridRowError> {
    let kind = rest.u8()?;
    let number = rest.varuint()?;
    let value = match kind {
        FALSE => SparseValue::Bool(false),
        TRUE => SparseValue::Bool(true),
        INT32 => SparseValue::Int32(rest.i32()?),
        UINT32 => SparseValue::UInt32(rest.u32()?),
        FLOAT64 => SparseValue::Float64(rest.f64()?),
        UTF8 => SparseValue::Text(text(rest.counted()?)?),
        BINARY => SparseValue::Binary(rest.counted()?),
        unknown => return Err(HybridRowError::UnknownType(unknown)),
    };
    Ok((number, value))
}

fn text(bytes: &[u8]) -> Result<&str, HybridRowError> {
    std::str::from_utf8(bytes).map_err(|_| HybridRowError::InvalidText)
}

/// A row under construction: fixed fields, then variable fields, then sparse fields.
#[derive(Debug)]
pub struct RowWriter {
    bytes: Vec<u8>,
    /// How many presence bits have been decided.
    fields: usize,
}

/// Where the presence byte of a row is: after the version and the schema.
const PRESENCE_AT: usize = 5;

impl RowWriter {
    /// A row of the schema without fields, with capacity for about `bytes`.
    pub fn new(schema: i32, bytes: usize) -> RowWriter {
        let mut row = Vec::with_capacity(bytes);
        row.push(VERSION);
        row.extend_from_slice(&schema.to_le_bytes());
        row.push(0);
        RowWriter { bytes: row, fields: 0 }
    }

    /// Appends the next fixed field.
    pub fn fixed(&mut self, value: i32) -> &mut RowWriter {
        self.decide_presence(true);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends the next variable field, or leaves it out.
    pub fn variable(&mut self, value: Option<&[u8]>) -> &mut RowWriter {
        self.decide_presence(value.is_some());
        if let Some(value) = value {
            write_counted(value, &mut self.bytes);
        }
        self
    }

    /// Appends a sparse field with its number.
    pub fn sparse(&mut self, number: u64, value: SparseValue<'_>) -> &mut RowWriter {
        let kind = match value {
            SparseValue::Bool(false) => FALSE,
            SparseValue::Bool(true) => TRUE,
            SparseValue::Int32(_) => INT32,
            SparseValue::UInt32(_) => UINT32,
            SparseValue::Float64(_) => FLOAT64,
            SparseValue::Text(_) => UTF8,
            SparseValue::Binary(_) => BINARY,
        };
        self.bytes.push(kind);
        write_varuint(number, &mut self.bytes);
        match value {
            SparseValue::Bool(_) => {}
            SparseValue::Int32(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            SparseValue::UInt32(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            SparseValue::Float64(value) => self.bytes.extend_from_slice(&value.to_le_bytes()),
            SparseValue::Text(value) => write_counted(value.as_bytes(), &mut self.bytes),
            SparseValue::Binary(value) => write_counted(value, &mut self.bytes),
        }
        self
    }

    /// The bytes of the row.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn decide_presence(&mut self, present: bool) {
        debug_assert!(self.fields < FIELDS_MAX, "one presence byte has eight bits");
        self.bytes[PRESENCE_AT] |= u8::from(present) << self.fields;
        self.fields += 1;
    }
}
