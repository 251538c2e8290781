//! What is written is read back, and lengths that cannot be are rejected.

use proptest::prelude::*;

use super::bytes::{Bytes, write_varuint};
use super::*;

const LAYOUT: Layout = Layout { schema: 77, fixed: 2, variable: 3 };

fn value() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![
        any::<bool>().prop_map(OwnedValue::Bool),
        any::<i32>().prop_map(OwnedValue::Int32),
        any::<u32>().prop_map(OwnedValue::UInt32),
        any::<f64>().prop_filter("comparable", |value| !value.is_nan()).prop_map(OwnedValue::Float64),
        ".{0,200}".prop_map(OwnedValue::Text),
        prop::collection::vec(any::<u8>(), 0..200).prop_map(OwnedValue::Binary),
    ]
}

#[derive(Clone, Debug)]
enum OwnedValue {
    Bool(bool),
    Int32(i32),
    UInt32(u32),
    Float64(f64),
    Text(String),
    Binary(Vec<u8>),
}

impl OwnedValue {
    fn borrowed(&self) -> SparseValue<'_> {
        match self {
            OwnedValue::Bool(value) => SparseValue::Bool(*value),
            OwnedValue::Int32(value) => SparseValue::Int32(*value),
            OwnedValue::UInt32(value) => SparseValue::UInt32(*value),
            OwnedValue::Float64(value) => SparseValue::Float64(*value),
            OwnedValue::Text(value) => SparseValue::Text(value),
            OwnedValue::Binary(value) => SparseValue::Binary(value),
        }
    }
}

proptest! {
    #[test]
    fn rows_and_records_round_trip(
        fixed in any::<[i32; 2]>(),
        variable in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..300)), 3),
        sparse in prop::collection::btree_map(1_u64..1 << 40, value(), 0..6),
    ) {
        let mut row = RowWriter::new(LAYOUT.schema, 0);
        fixed.iter().for_each(|value| { row.fixed(*value); });
        variable.iter().for_each(|value| { row.variable(value.as_deref()); });
        sparse.iter().for_each(|(number, value)| { row.sparse(*number, value.borrowed()); });
        let mut records = RecordWriter::with_capacity(0);
        records.push(row.bytes());
        records.push(row.bytes());
        let body = records.finish();
        prop_assert!(is_hybrid_row(&body));
        let rows: Vec<&[u8]> = read_records(&body).collect::<Result<_, _>>().expect("what was written");
        prop_assert_eq!(&rows, &[row.bytes(), row.bytes()]);
        let read = Row::read(rows[1], LAYOUT).expect("what was written");
        for (at, value) in fixed.iter().enumerate() {
            prop_assert_eq!(read.fixed(at), Some(*value));
        }
        for (at, value) in variable.iter().enumerate() {
            prop_assert_eq!(read.variable(at), value.as_deref());
        }
        for (number, value) in &sparse {
            prop_assert_eq!(read.sparse(*number), Some(value.borrowed()));
        }
        prop_assert_eq!(read.sparse(0), None);
    }

    #[test]
    fn integers_of_variable_length_round_trip(value in any::<u64>()) {
        let mut out = Vec::new();
        write_varuint(value, &mut out);
        let mut rest = Bytes(&out);
        prop_assert_eq!(rest.varuint(), Ok(value));
        prop_assert!(rest.0.is_empty());
    }
}

#[test]
fn an_integer_has_ten_bytes_at_the_most() {
    assert_eq!(Bytes(&[0x80; 12]).varuint(), Err(HybridRowError::InvalidInteger));
    assert_eq!(Bytes(&[0xFF; 12]).varuint(), Err(HybridRowError::InvalidInteger));
    assert_eq!(Bytes(&[0x80, 0x80]).varuint(), Err(HybridRowError::Truncated));
    let largest = [[0xFF; 9].as_slice(), &[0x01]].concat();
    assert_eq!(Bytes(&largest).varuint(), Ok(u64::MAX));
}

#[test]
fn absent_fixed_fields_take_their_bytes() {
    let row = [&[0x81, 77, 0, 0, 0, 0b110][..], &[1, 0, 0, 0], &[2, 0, 0, 0], &[1, b'x']].concat();
    let read = Row::read(&row, LAYOUT).expect("a row");
    assert_eq!((read.fixed(0), read.fixed(1)), (None, Some(2)));
    assert_eq!((read.variable_text(0), read.variable(1)), (Ok(Some("x")), None));
}

#[test]
fn lengths_that_cannot_be_are_rejected() {
    let mut records = RecordWriter::with_capacity(0);
    records.push(RowWriter::new(LAYOUT.schema, 0).bytes());
    let body = records.finish();
    let with = |at: usize, length: i32| {
        let mut body = body.clone();
        body[at..at + 4].copy_from_slice(&length.to_le_bytes());
        read_records(&body).find_map(Result::err)
    };
    let (segment_length, record_length) = (6, 15);
    assert_eq!(with(segment_length, 9), Some(HybridRowError::InvalidLength(9)));
    assert_eq!(with(segment_length, -1), Some(HybridRowError::InvalidLength(-1)));
    assert_eq!(with(segment_length, i32::MAX), Some(HybridRowError::Truncated));
    assert_eq!(with(record_length, -6), Some(HybridRowError::InvalidLength(-6)));
    assert_eq!(with(record_length, i32::MAX), Some(HybridRowError::Truncated));
    assert_eq!(with(record_length, 0), Some(HybridRowError::Checksum(0)));
    let row = [&[0x81, 77, 0, 0, 0, 0b100][..], &[0; 8], &[0xFF; 9], &[0x01]].concat();
    assert_eq!(Row::read(&row, LAYOUT), Err(HybridRowError::Truncated), "a length of 2^64 - 1");
    let row = [&[0x81, 77, 0, 0, 0, 0][..], &[0; 8], &[0x14, 1, 1, 0xFF]].concat();
    assert_eq!(Row::read(&row, LAYOUT), Err(HybridRowError::InvalidText));
    let row = [&[0x81, 77, 0, 0, 0, 0][..], &[0; 8], &[0x2A, 1]].concat();
    assert_eq!(Row::read(&row, LAYOUT), Err(HybridRowError::UnknownType(0x2A)));
    assert_eq!(Row::read(&[0x80], LAYOUT), Err(HybridRowError::UnknownVersion(0x80)));
}
