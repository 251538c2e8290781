//! Batch requests: many operations in one request, and their results.
//!
//! Input and output: JSON arrays. Item bodies inside them are not parsed, so that they are stored as they
//! were sent. Executing the operations is left to the server.

use std::borrow::Cow;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::number::write_double;
use crate::partition::{PartitionKey, PartitionKeyError, PartitionKeyHeader};
use crate::status::{Status, SubStatus};

/// The largest number of operations in one batch.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// The largest body of a batch request, in bytes.
pub const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The type of a batch operation. Names are read in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Cow<'_, str>")]
#[expect(missing_docs, reason = "the names say it")]
pub enum BatchOperationType {
    Create,
    Upsert,
    Replace,
    Read,
    Delete,
    Patch,
}

impl BatchOperationType {
    const ALL: [(&'static str, BatchOperationType); 6] = [
        ("Create", BatchOperationType::Create),
        ("Upsert", BatchOperationType::Upsert),
        ("Replace", BatchOperationType::Replace),
        ("Read", BatchOperationType::Read),
        ("Delete", BatchOperationType::Delete),
        ("Patch", BatchOperationType::Patch),
    ];

    /// The name used in request bodies, such as `Upsert`.
    pub fn name(self) -> &'static str {
        BatchOperationType::ALL.into_iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The properties that an operation of this type must have.
    fn needs(self) -> &'static [Member] {
        match self {
            BatchOperationType::Create | BatchOperationType::Upsert => &[Member::ResourceBody],
            BatchOperationType::Replace | BatchOperationType::Patch => &[Member::Id, Member::ResourceBody],
            BatchOperationType::Read | BatchOperationType::Delete => &[Member::Id],
        }
    }
}

impl TryFrom<Cow<'_, str>> for BatchOperationType {
    type Error = String;

    fn try_from(word: Cow<'_, str>) -> Result<BatchOperationType, String> {
        let known = BatchOperationType::ALL.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(&word));
        known.map(|(_, kind)| kind).ok_or_else(|| {
            format!("'{word}' is not a batch operation; use Create, Upsert, Replace, Patch, Read or Delete")
        })
    }
}

/// A property that some operation types require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Id,
    ResourceBody,
}

/// One operation of a batch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchOperation<'a> {
    /// The type of the operation.
    pub operation_type: BatchOperationType,
    /// The id of the item. For creates and upserts it is in the body.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// The item, or the operations of a patch; not parsed.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub resource_body: Option<&'a RawValue>,
    /// Executes the operation only if the item still has this ETag.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<Cow<'a, str>>,
    /// Executes the operation only if the item no longer has this ETag.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub if_none_match: Option<Cow<'a, str>>,
    /// The partition key of the item, if the request's headers do not have it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    partition_key: Option<&'a RawValue>,
}

/// The error of a batch that is rejected as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BatchError {
    /// The batch has no operations.
    #[error("Batch request has no operations.")]
    Empty,
    /// The batch has more than [`BATCH_OPERATIONS_MAX`] operations.
    #[error("Batch request has more operations than what is supported.")]
    TooMany,
    /// The body is larger than [`BATCH_BYTES_MAX`]. This is the only error with status 413.
    #[error("Request size is too large. A batch may have {BATCH_BYTES_MAX} bytes.")]
    TooLarge,
    /// The body is not a list of operations.
    #[error("The batch is not a JSON list of operations: {0}")]
    Malformed(String),
    /// An operation lacks a required property.
    #[error("The batch operation {operation} needs '{member}'.")]
    MissingMember {
        /// The type of the operation.
        operation: &'static str,
        /// The name of the missing property.
        member: &'static str,
    },
}

impl BatchError {
    /// The status of the response to the batch.
    pub fn status(&self) -> Status {
        match self {
            BatchError::TooLarge => Status::REQUEST_ENTITY_TOO_LARGE,
            BatchError::Empty
            | BatchError::TooMany
            | BatchError::Malformed(_)
            | BatchError::MissingMember { .. } => Status::BAD_REQUEST,
        }
    }
}

/// Parses the body of a batch request.
///
/// Cost: one pass; allocates the list, and ids only if they have escapes.
pub fn parse_operations(body: &[u8]) -> Result<Vec<BatchOperation<'_>>, BatchError> {
    if body.len() > BATCH_BYTES_MAX {
        return Err(BatchError::TooLarge);
    }
    let operations: Vec<BatchOperation<'_>> =
        serde_json::from_slice(body).map_err(|error| BatchError::Malformed(error.to_string()))?;
    match operations.len() {
        0 => return Err(BatchError::Empty),
        1..=BATCH_OPERATIONS_MAX => {}
        _ => return Err(BatchError::TooMany),
    }
    operations.iter().try_for_each(BatchOperation::check)?;
    Ok(operations)
}

impl<'a> BatchOperation<'a> {
    /// An operation without an id, a body or conditions.
    pub fn new(operation_type: BatchOperationType) -> BatchOperation<'a> {
        BatchOperation {
            operation_type,
            id: None,
            resource_body: None,
            if_match: None,
            if_none_match: None,
            partition_key: None,
        }
    }

    /// Sets the partition key of the item; `key` is a JSON string with the key in header form, or the list
    /// itself.
    pub fn with_partition_key(self, key: &'a RawValue) -> BatchOperation<'a> {
        BatchOperation { partition_key: Some(key), ..self }
    }

    /// The partition key of the operation in header form. Clients send it as a list inside a string, or as
    /// a list.
    pub fn partition_key_text(&self) -> Option<Cow<'a, str>> {
        let raw = self.partition_key?;
        Some(Borrowed::read(raw).unwrap_or(Cow::Borrowed(raw.get())))
    }

    /// The parsed partition key of the operation, if it has one.
    pub fn partition_key(&self) -> Result<Option<PartitionKeyHeader>, PartitionKeyError> {
        self.partition_key_text().map(|text| PartitionKey::parse_header(&text)).transpose()
    }

    /// Checks that all required properties are present.
    fn check(&self) -> Result<(), BatchError> {
        for member in self.operation_type.needs() {
            let (member, is_stated) = match member {
                Member::Id => ("id", self.id.is_some()),
                Member::ResourceBody => ("resourceBody", self.resource_body.is_some()),
            };
            if !is_stated {
                return Err(BatchError::MissingMember { operation: self.operation_type.name(), member });
            }
        }
        Ok(())
    }
}

/// A JSON string, borrowed if it has no escapes.
#[derive(Deserialize)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Borrowed<'a> {
    fn read(raw: &'a RawValue) -> Option<Cow<'a, str>> {
        serde_json::from_str(raw.get()).ok().map(|Borrowed(text)| text)
    }
}

/// The result of one operation of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchResult<B> {
    /// The status of this operation; 424 if it failed because another operation failed.
    pub status: Status,
    /// The sub-status, or none.
    pub sub_status: SubStatus,
    /// The request units that the operation consumed.
    pub request_charge: f64,
    /// The ETag of the item, in quotes.
    pub etag: Option<String>,
    /// The item as JSON text.
    pub resource_body: Option<B>,
    /// How long to wait before a retry, if the status is 429.
    pub retry_after_ms: Option<u64>,
    /// The error message, if the operation failed.
    pub message: Option<String>,
}

impl<B> BatchResult<B> {
    /// A result with only a status and a request charge.
    pub fn new(status: Status, request_charge: f64) -> BatchResult<B> {
        BatchResult {
            status,
            sub_status: SubStatus::NONE,
            request_charge,
            etag: None,
            resource_body: None,
            retry_after_ms: None,
            message: None,
        }
    }

    /// The result of an operation that failed because another one did.
    pub fn failed_dependency() -> BatchResult<B> {
        BatchResult::new(Status::FAILED_DEPENDENCY, 0.0)
    }
}

/// The status of the whole response: 207 if any operation failed.
pub fn envelope_status<B>(results: &[BatchResult<B>]) -> Status {
    if results.iter().any(|result| result.status.is_error()) { Status::MULTI_STATUS } else { Status::OK }
}

/// Writes the body of the response. Item bodies are copied unchanged.
pub fn write_results<B: AsRef<[u8]>>(results: &[BatchResult<B>]) -> Vec<u8> {
    let bodies: usize = results
        .iter()
        .map(|result| result.resource_body.as_ref().map_or(0, |body| body.as_ref().len()))
        .sum();
    let mut out = Vec::with_capacity(bodies + results.len() * 128 + 2);
    out.push(b'[');
    for (index, result) in results.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_result(result, &mut out);
    }
    out.push(b']');
    out
}

fn write_result<B: AsRef<[u8]>>(result: &BatchResult<B>, out: &mut Vec<u8>) {
    let mut head = String::with_capacity(96);
    let in_memory = "writing to memory cannot fail";
    write!(head, "{{\"statusCode\":{}", result.status.0).expect(in_memory);
    if !result.sub_status.is_none() {
        write!(head, ",\"subStatusCode\":{}", result.sub_status).expect(in_memory);
    }
    head.push_str(",\"requestCharge\":");
    write_double(if result.request_charge.is_finite() { result.request_charge } else { 0.0 }, &mut head);
    if let Some(wait) = result.retry_after_ms {
        write!(head, ",\"retryAfterMilliseconds\":{wait}").expect(in_memory);
    }
    for (name, text) in [("eTag", &result.etag), ("message", &result.message)] {
        if let Some(text) = text {
            let quoted = serde_json::to_string(text).expect("a string is JSON");
            write!(head, ",\"{name}\":{quoted}").expect(in_memory);
        }
    }
    out.extend_from_slice(head.as_bytes());
    if let Some(body) = &result.resource_body {
        out.extend_from_slice(b",\"resourceBody\":");
        out.extend_from_slice(body.as_ref());
    }
    out.push(b'}');
}

/// Parses the body of a batch response, as a client does.
pub fn parse_results(body: &[u8]) -> Result<Vec<BatchResult<&[u8]>>, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wire<'a> {
        status_code: u16,
        #[serde(default)]
        sub_status_code: u32,
        #[serde(default)]
        request_charge: f64,
        #[serde(default)]
        e_tag: Option<String>,
        #[serde(borrow, default)]
        resource_body: Option<&'a RawValue>,
        #[serde(default)]
        retry_after_milliseconds: Option<u64>,
        #[serde(default)]
        message: Option<String>,
    }

    let results: Vec<Wire<'_>> = serde_json::from_slice(body)?;
    let read = results.into_iter().map(|wire| BatchResult {
        status: Status(wire.status_code),
        sub_status: SubStatus(wire.sub_status_code),
        request_charge: wire.request_charge,
        etag: wire.e_tag,
        resource_body: wire.resource_body.map(|body| body.get().as_bytes()),
        retry_after_ms: wire.retry_after_milliseconds,
        message: wire.message,
    });
    Ok(read.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_with_their_bodies_untouched() {
        let body = br#"[{"operationType":"Create","resourceBody":{"z":1, "id":"a"}},
            {"operationType":"Replace","id":"a\u00e9","ifMatch":"\"e\"","resourceBody":{}},
            {"operationType":"Delete","id":"b","resourceBody":null,"partitionKey":"[\"x\"]"},
            {"operationType":"Read","id":"c","partitionKey":["x",{}],"unknown":1},
            {"operationType":"Patch","id":"d","resourceBody":[{"op":"remove","path":"/a"}]},
            {"operationType":"Upsert","ifNoneMatch":"*","resourceBody":{}}]"#;
        let operations = parse_operations(body).expect("a batch");
        assert_eq!(operations.len(), 6);
        assert_eq!(operations[0].resource_body.map(RawValue::get), Some(r#"{"z":1, "id":"a"}"#));
        assert_eq!(operations[1].id.as_deref(), Some("aé"));
        assert_eq!(operations[1].if_match.as_deref(), Some("\"e\""));
        assert!(operations[2].resource_body.is_none(), "null is nothing");
        let key = |operation: &BatchOperation<'_>| operation.partition_key().expect("a key");
        assert_eq!(key(&operations[0]), None);
        assert_eq!(key(&operations[2]), Some(PartitionKeyHeader::Key(PartitionKey::single("x"))));
        assert!(
            matches!(key(&operations[3]), Some(PartitionKeyHeader::Key(key)) if key.components().len() == 2)
        );
        assert_eq!(operations[4].operation_type, BatchOperationType::Patch);
        assert_eq!(operations[5].if_none_match.as_deref(), Some("*"));
    }

    #[test]
    fn an_invalid_batch_is_rejected_as_a_whole() {
        let read = r#"{"operationType":"Read","id":"1"}"#;
        let many = |count: usize| format!("[{}]", vec![read; count].join(","));
        assert_eq!(parse_operations(many(100).as_bytes()).map(|batch| batch.len()).ok(), Some(100));
        assert_eq!(parse_operations(many(101).as_bytes()).err(), Some(BatchError::TooMany));
        assert_eq!(parse_operations(b"[]").err(), Some(BatchError::Empty));
        let large = vec![b' '; BATCH_BYTES_MAX + 1];
        let error = parse_operations(&large).expect_err("too large");
        assert_eq!((error.status(), BatchError::Empty.status()), (Status(413), Status(400)));
        assert_eq!(BatchError::Empty.to_string(), "Batch request has no operations.");
        assert_eq!(
            BatchError::TooMany.to_string(),
            "Batch request has more operations than what is supported."
        );
        for body in [
            "",
            "{}",
            "null",
            "[1]",
            "[{}]",
            r#"[{"operationType":"Merge"}]"#,
            r#"[{"operationType":"Read","id":1}]"#,
            r#"[{"operationType":"Read","id":"1","ifMatch":5}]"#,
        ] {
            assert!(matches!(parse_operations(body.as_bytes()), Err(BatchError::Malformed(_))), "{body}");
        }
    }

    #[test]
    fn an_operation_states_its_item_and_its_body() {
        for (operation, missing) in [
            ("Create", &["resourceBody"][..]),
            ("upsert", &["resourceBody"]),
            ("Replace", &["id", "resourceBody"]),
            ("PATCH", &["id", "resourceBody"]),
            ("Read", &["id"]),
            ("delete", &["id"]),
        ] {
            for without in ["id", "resourceBody"] {
                let members = [("id", r#""id":"1""#), ("resourceBody", r#""resourceBody":{}"#)];
                let member = members.iter().find(|(name, _)| *name != without).expect("the other one").1;
                let body = format!(r#"[{{"operationType":"{operation}",{member}}}]"#);
                let outcome = parse_operations(body.as_bytes());
                match missing.contains(&without) {
                    true => assert!(
                        matches!(outcome, Err(BatchError::MissingMember { member, .. }) if member == without),
                        "{body}"
                    ),
                    false => assert!(outcome.is_ok(), "{body}"),
                }
            }
        }
        let replace = br#"[{"operationType":"replace","resourceBody":{"id":"1"}}]"#;
        let error = parse_operations(replace).expect_err("no id").to_string();
        assert_eq!(error, "The batch operation Replace needs 'id'.");
    }

    #[test]
    fn what_a_client_builds_is_what_a_server_reads() {
        let body = r#"[{"operationType":"Create","resourceBody":{"id":"a"},"partitionKey":"[\"x\"]"},{"operationType":"Replace","id":"a","resourceBody":{"id":"a"},"ifMatch":"\"e\""}]"#;
        let document: &RawValue = serde_json::from_str(r#"{"id":"a"}"#).expect("json");
        let key: &RawValue = serde_json::from_str(r#""[\"x\"]""#).expect("json");
        let create = BatchOperation {
            resource_body: Some(document),
            ..BatchOperation::new(BatchOperationType::Create).with_partition_key(key)
        };
        let replace = BatchOperation {
            id: Some("a".into()),
            resource_body: Some(document),
            if_match: Some("\"e\"".into()),
            ..BatchOperation::new(BatchOperationType::Replace)
        };
        assert_eq!(serde_json::to_string(&[create, replace]).expect("plain data"), body);
        let read = parse_operations(body.as_bytes()).expect("a batch");
        assert_eq!(read[0].partition_key_text().as_deref(), Some(r#"["x"]"#));
        assert_eq!(serde_json::to_string(&read).expect("plain data"), body);
    }

    #[test]
    fn results_have_the_services_members() {
        let created: BatchResult<&[u8]> = BatchResult {
            etag: Some("\"e\"".into()),
            resource_body: Some(br#"{"id":"a"}"#),
            ..BatchResult::new(Status::CREATED, 6.29)
        };
        let conflict = BatchResult {
            sub_status: SubStatus::UNIQUE_INDEX_VIOLATION,
            message: Some("say \"no\"".into()),
            retry_after_ms: Some(5),
            ..BatchResult::new(Status::CONFLICT, 1.0)
        };
        let results = [created, BatchResult::failed_dependency(), conflict];
        let body = write_results(&results);
        let expected = concat!(
            r#"[{"statusCode":201,"requestCharge":6.29,"eTag":"\"e\"","resourceBody":{"id":"a"}},"#,
            r#"{"statusCode":424,"requestCharge":0},"#,
            r#"{"statusCode":409,"subStatusCode":3301,"requestCharge":1,"retryAfterMilliseconds":5,"message":"say \"no\""}]"#
        );
        assert_eq!(String::from_utf8_lossy(&body), expected);
        assert_eq!(parse_results(&body).expect("what was written"), results);
        assert_eq!(envelope_status(&results), Status::MULTI_STATUS);
        assert_eq!(envelope_status(&results[..1]), Status::OK);
    }
}
