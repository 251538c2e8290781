//! Batches as HybridRow records, one for each operation or result.

use std::borrow::Cow;

use super::{BatchError, BatchOperationType, BatchResult, RequestedOperation};
use crate::hybrid_row::{HybridRowError, Layout, RecordWriter, Row, RowWriter, SparseValue, read_records};

/// The schema of an operation: its type and that of the resource; partition key, EPK, id, binary id and body.
const OPERATION: Layout = Layout { schema: 2_145_473_648, fixed: 2, variable: 5 };
/// The number of the schema of a result.
const RESULT_SCHEMA: i32 = 2_145_473_649;
/// The resource type of items.
const ITEM: i32 = 2;

/// The fixed fields of an operation, by their index.
mod fixed {
    pub(super) const OPERATION_TYPE: usize = 0;
    pub(super) const RESOURCE_TYPE: usize = 1;
}

/// The variable fields of an operation, by their index. Its EPK and its binary id only repeat the key and the id.
mod variable {
    pub(super) const PARTITION_KEY: usize = 0;
    pub(super) const ID: usize = 2;
    pub(super) const RESOURCE_BODY: usize = 4;
}

/// The sparse fields, by their number in the schema.
mod sparse {
    pub(super) const INDEXING_DIRECTIVE: u64 = 8;
    pub(super) const IF_MATCH: u64 = 9;
    pub(super) const IF_NONE_MATCH: u64 = 10;
    pub(super) const TIME_TO_LIVE: u64 = 11;
    pub(super) const MINIMAL_RETURN_PREFERENCE: u64 = 12;
    pub(super) const RESULT_RETRY_AFTER: u64 = 5;
    pub(super) const RESULT_CHARGE: u64 = 6;
}

/// Parses the records of a batch request.
pub(super) fn parse_operations(body: &[u8]) -> Result<Vec<RequestedOperation<'_>>, BatchError> {
    // One more than allowed shows that there are too many; the rest need not be read.
    let rows = read_records(body).take(super::BATCH_OPERATIONS_MAX + 1);
    rows.map(|row| Ok(parse_operation(row?)?)).collect()
}

fn parse_operation(row: &[u8]) -> Result<RequestedOperation<'_>, HybridRowError> {
    let row = Row::read(row, OPERATION)?;
    let operation_type = match row.fixed(fixed::OPERATION_TYPE) {
        Some(0) => BatchOperationType::Create,
        Some(1) => BatchOperationType::Patch,
        Some(2) => BatchOperationType::Read,
        Some(4) => BatchOperationType::Delete,
        Some(5) => BatchOperationType::Replace,
        Some(20) => BatchOperationType::Upsert,
        _ => return Err(HybridRowError::InvalidField("operationType")),
    };
    if row.fixed(fixed::RESOURCE_TYPE).is_some_and(|kind| kind != ITEM) {
        return Err(HybridRowError::InvalidField("resourceType"));
    }
    let text = |number, name| match row.sparse(number) {
        None => Ok(None),
        Some(SparseValue::Text(text)) => Ok(Some(Cow::Borrowed(text))),
        Some(_) => Err(HybridRowError::InvalidField(name)),
    };
    Ok(RequestedOperation {
        operation_type,
        id: row.variable_text(variable::ID)?.map(Cow::Borrowed),
        partition_key: row.variable_text(variable::PARTITION_KEY)?.map(Cow::Borrowed),
        resource_body: row.variable(variable::RESOURCE_BODY),
        if_match: text(sparse::IF_MATCH, "ifMatch")?,
        if_none_match: text(sparse::IF_NONE_MATCH, "ifNoneMatch")?,
        indexing_directive: text(sparse::INDEXING_DIRECTIVE, "indexingDirective")?,
        time_to_live_seconds: match row.sparse(sparse::TIME_TO_LIVE) {
            None => None,
            Some(SparseValue::Int32(seconds)) => Some(seconds),
            Some(_) => return Err(HybridRowError::InvalidField("timeToLiveInSeconds")),
        },
        minimal_return_preference: match row.sparse(sparse::MINIMAL_RETURN_PREFERENCE) {
            None => false,
            Some(SparseValue::Bool(minimal)) => minimal,
            Some(_) => return Err(HybridRowError::InvalidField("minimalReturnPreference")),
        },
    })
}

/// Bytes of a result besides its item.
const RESULT_BYTES_USUAL: usize = 96;

/// Writes one record for each result. The body of a failed operation is its message.
pub(super) fn write_results<B: AsRef<[u8]>>(results: &[BatchResult<B>]) -> Vec<u8> {
    let bytes: usize = results.iter().map(|result| result_body(result).map_or(0, <[u8]>::len)).sum();
    let mut records = RecordWriter::with_capacity(bytes + results.len() * RESULT_BYTES_USUAL);
    for result in results {
        let body = result_body(result);
        let mut row = RowWriter::new(RESULT_SCHEMA, body.map_or(0, <[u8]>::len) + RESULT_BYTES_USUAL);
        row.fixed(i32::from(result.status.0))
            .fixed(i32::try_from(result.sub_status.0).unwrap_or(i32::MAX))
            .variable(result.etag.as_deref().map(str::as_bytes))
            .variable(body);
        if let Some(wait) = result.retry_after_ms {
            let wait = u32::try_from(wait).unwrap_or(u32::MAX);
            row.sparse(sparse::RESULT_RETRY_AFTER, SparseValue::UInt32(wait));
        }
        row.sparse(sparse::RESULT_CHARGE, SparseValue::Float64(result.request_charge));
        records.push(row.bytes());
    }
    records.finish()
}

fn result_body<B: AsRef<[u8]>>(result: &BatchResult<B>) -> Option<&[u8]> {
    let message = || result.message.as_deref().map(str::as_bytes);
    result.resource_body.as_ref().map(AsRef::as_ref).or_else(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::{BATCH_OPERATIONS_MAX, BatchEncoding, BatchRequest};
    use crate::status::{Status, SubStatus};

    /// Six operations as the .NET SDK sends them, with the key in the header.
    const SIX_OPERATIONS: &str = "
        81f0d8ff7f010a000000
        81f1d8ff7f2200000050ef47aa 817054e17f430000000002000000137b226964223a2231222c22706b223a2261227d
        81f1d8ff7f2e000000e356df12 817054e17f431400000002000000137b226964223a2232222c22706b223a2261227d
        1408074578636c756465030c
        81f1d8ff7f3000000074ceeeee 817054e17f5305000000020000000131197b226964223a2231222c22706b223a2261222c22
        6e223a317d140903226522
        81f1d8ff7f14000000455d3d49 817054e17f1302000000020000000132140a012a
        81f1d8ff7f650000008e163e94 817054e17f5301000000020000000132547b22636f6e646974696f6e223a2246524f4d2063
        20574845524520632e6e3d31222c226f7065726174696f6e73223a5b7b226f70223a22736574222c2270617468223a222f6122
        2c2276616c7565223a317d5d7d
        81f1d8ff7f100000009303f638 817054e17f1304000000020000000131";

    /// Three results, of the form that the .NET SDK reads.
    const THREE_RESULTS: &str = "
        81f0d8ff7f010a000000
        81f1d8ff7f3400000057b82c2a 817154e17f0fc9000000000000000422653122167b226964223a202231222c2022706b223a
        202261227d1006295c8fc2f5281940
        81f1d8ff7f18000000e3c14e24 817154e17f03a80100000000000010060000000000000000
        81f1d8ff7f1e000000f0753301 817154e17f03ad010000800c00000b050c00000010060000000000000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
    }

    fn body_of(operation: RowWriter) -> Vec<u8> {
        let mut records = RecordWriter::with_capacity(0);
        records.push(operation.bytes());
        records.finish()
    }

    fn read_row() -> RowWriter {
        let mut row = RowWriter::new(OPERATION.schema, 0);
        row.fixed(2).fixed(ITEM).variable(None).variable(None).variable(Some(b"1"));
        row.variable(None).variable(None);
        row
    }

    #[test]
    fn operations_of_the_dotnet_sdk_are_read() {
        let body = bytes(SIX_OPERATIONS);
        assert_eq!(body.len(), 353);
        let request = BatchRequest::parse(&body).expect("a batch");
        assert_eq!(request.encoding, BatchEncoding::HybridRow);
        let [create, upsert, replace, read, patch, delete] = request.operations.as_slice() else {
            panic!("six operations");
        };
        let text = |body: Option<&[u8]>| body.map(|body| String::from_utf8_lossy(body).into_owned());
        assert_eq!(create.operation_type, BatchOperationType::Create);
        assert_eq!(text(create.resource_body).as_deref(), Some(r#"{"id":"1","pk":"a"}"#));
        assert_eq!((&create.id, &create.partition_key), (&None, &None));
        assert_eq!(upsert.operation_type, BatchOperationType::Upsert);
        assert_eq!(upsert.indexing_directive.as_deref(), Some("Exclude"));
        assert!(upsert.minimal_return_preference && !create.minimal_return_preference);
        assert_eq!(replace.operation_type, BatchOperationType::Replace);
        assert_eq!((replace.id.as_deref(), replace.if_match.as_deref()), (Some("1"), Some("\"e\"")));
        assert_eq!(
            (read.operation_type, read.if_none_match.as_deref()),
            (BatchOperationType::Read, Some("*"))
        );
        assert_eq!((patch.operation_type, patch.id.as_deref()), (BatchOperationType::Patch, Some("2")));
        assert!(text(patch.resource_body).is_some_and(|body| body.starts_with(r#"{"condition":"#)));
        assert_eq!((delete.operation_type, delete.id.as_deref()), (BatchOperationType::Delete, Some("1")));
    }

    #[test]
    fn a_bulk_operation_has_a_partition_key_of_its_own() {
        let row =
            bytes("817054e17f47 14000000 02000000 055b2262225d 137b226964223a2232222c22706b223a2262227d");
        let operation = parse_operation(&row).expect("an upsert");
        assert_eq!(operation.operation_type, BatchOperationType::Upsert);
        assert_eq!(operation.partition_key.as_deref(), Some(r#"["b"]"#));
    }

    #[test]
    fn results_are_written_as_the_dotnet_sdk_reads_them() {
        let created: BatchResult<&[u8]> = BatchResult {
            etag: Some("\"e1\"".into()),
            resource_body: Some(br#"{"id": "1", "pk": "a"}"#),
            ..BatchResult::new(Status::CREATED, 6.29)
        };
        let throttled = BatchResult {
            sub_status: SubStatus(3200),
            retry_after_ms: Some(12),
            ..BatchResult::new(Status::TOO_MANY_REQUESTS, 0.0)
        };
        let mut results = [created, BatchResult::failed_dependency(), throttled];
        let body = BatchEncoding::HybridRow.write_results(&results);
        assert_eq!(body, bytes(THREE_RESULTS));
        results[2].message = Some("slow down".into());
        let body = BatchEncoding::HybridRow.write_results(&results);
        assert!(
            body.windows(9).any(|text| text == b"slow down"),
            "the message of a failed operation is its body"
        );
    }

    #[test]
    fn unknown_fields_are_skipped_and_invalid_ones_rejected() {
        let mut row = read_row();
        for value in [
            SparseValue::Bool(true),
            SparseValue::Int32(-1),
            SparseValue::UInt32(1),
            SparseValue::Float64(0.5),
            SparseValue::Text("later"),
            SparseValue::Binary(&[1, 2]),
        ] {
            row.sparse(200, value);
        }
        row.sparse(sparse::TIME_TO_LIVE, SparseValue::Int32(5));
        let body = body_of(row);
        let request = BatchRequest::parse(&body).expect("a batch");
        assert_eq!(request.operations[0].time_to_live_seconds, Some(5));
        for (number, value) in [
            (sparse::IF_MATCH, SparseValue::Bool(true)),
            (sparse::IF_NONE_MATCH, SparseValue::Int32(1)),
            (sparse::INDEXING_DIRECTIVE, SparseValue::Binary(b"x")),
            (sparse::TIME_TO_LIVE, SparseValue::Text("5")),
            (sparse::MINIMAL_RETURN_PREFERENCE, SparseValue::Int32(1)),
        ] {
            let mut row = read_row();
            row.sparse(number, value);
            let error = BatchRequest::parse(&body_of(row)).expect_err("another type");
            assert!(matches!(error, BatchError::MalformedRows(HybridRowError::InvalidField(_))), "{error}");
        }
        for operation_type in [3, 21, -1] {
            let mut row = RowWriter::new(OPERATION.schema, 0);
            row.fixed(operation_type).fixed(ITEM);
            assert!(BatchRequest::parse(&body_of(row)).is_err(), "{operation_type}");
        }
        let mut of_database = RowWriter::new(OPERATION.schema, 0);
        of_database.fixed(2).fixed(0);
        assert!(BatchRequest::parse(&body_of(of_database)).is_err());
        let of_result = RowWriter::new(RESULT_SCHEMA, 0);
        let error = BatchRequest::parse(&body_of(of_result)).expect_err("another schema");
        assert_eq!(error, BatchError::MalformedRows(HybridRowError::UnknownSchema(RESULT_SCHEMA)));
        assert_eq!(error.status(), Status::BAD_REQUEST);
    }

    #[test]
    fn the_limits_of_a_batch_hold_in_both_encodings() {
        let repeated = |count: usize| {
            let mut records = RecordWriter::with_capacity(0);
            (0..count).for_each(|_| records.push(read_row().bytes()));
            records.finish()
        };
        assert_eq!(BatchRequest::parse(&repeated(0)).err(), Some(BatchError::Empty));
        let full = repeated(BATCH_OPERATIONS_MAX);
        assert_eq!(BatchRequest::parse(&full).map(|request| request.operations.len()), Ok(100));
        assert_eq!(BatchRequest::parse(&repeated(101)).err(), Some(BatchError::TooMany));
        let mut without_id = RowWriter::new(OPERATION.schema, 0);
        without_id.fixed(4).fixed(ITEM);
        let error = BatchRequest::parse(&body_of(without_id)).expect_err("no id");
        assert_eq!(error.to_string(), "The batch operation Delete needs 'id'.");
        let large = vec![0x81; crate::batch::BATCH_BYTES_MAX + 1];
        assert_eq!(BatchRequest::parse(&large).err(), Some(BatchError::TooLarge));
    }

    #[test]
    fn a_body_that_is_cut_off_anywhere_is_rejected() {
        let body = bytes(SIX_OPERATIONS);
        // After whole records a body may end.
        let mut ends = vec![10, 57, 116, 177, 210, 324];
        for length in 1..body.len() {
            let outcome = BatchRequest::parse(&body[..length]);
            if ends.contains(&length) {
                ends.retain(|end| *end != length);
                continue;
            }
            assert!(outcome.is_err(), "{length} bytes");
        }
        assert!(ends.is_empty(), "each end was met");
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_never_taken_for_another_batch(at in 0..353_usize, bit in 0..8_u32) {
            let mut body = bytes(SIX_OPERATIONS);
            body[at] ^= 1 << bit;
            // Within the segment header, only presence bits of optional fields change nothing.
            if let Ok(request) = BatchRequest::parse(&body) {
                prop_assert_eq!(at, 5, "the presence byte of the segment header");
                prop_assert_eq!(request.operations.len(), 6);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(mut body in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Some(first) = body.first_mut() {
                *first = 0x81;
            }
            let _ = BatchRequest::parse(&body);
        }

        #[test]
        fn arbitrary_rows_never_panic(row in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut start = RowWriter::new(OPERATION.schema, 0).bytes().to_vec();
            start.pop();
            start.extend_from_slice(&row);
            let mut records = RecordWriter::with_capacity(0);
            records.push(&start);
            let _ = BatchRequest::parse(&records.finish());
        }
    }
}
