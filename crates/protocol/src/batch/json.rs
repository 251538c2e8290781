//! Batches as JSON arrays, for servers and for clients.

use std::borrow::Cow;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{BATCH_BYTES_MAX, BatchError, BatchOperationType, BatchResult, RequestedOperation, check_count};
use crate::number::write_double;
use crate::partition::{PartitionKey, PartitionKeyError, PartitionKeyHeader};
use crate::status::{Status, SubStatus};

/// One operation of a batch as an element of the JSON array.
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
    /// Whether the item is indexed: `Default`, `Include` or `Exclude`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub indexing_directive: Option<Cow<'a, str>>,
    /// The lifetime of the item, where it is not in the body.
    #[serde(default, rename = "timeToLiveInSeconds", skip_serializing_if = "Option::is_none")]
    pub time_to_live_seconds: Option<i32>,
    /// Whether the result omits the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimal_return_preference: Option<bool>,
    /// The partition key of the item, if the request's headers do not have it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    partition_key: Option<&'a RawValue>,
}

/// Parses the JSON array of a batch request.
///
/// Cost: one pass; allocates the list, and ids only if they have escapes.
pub fn parse_operations(body: &[u8]) -> Result<Vec<BatchOperation<'_>>, BatchError> {
    if body.len() > BATCH_BYTES_MAX {
        return Err(BatchError::TooLarge);
    }
    let operations: Vec<BatchOperation<'_>> =
        serde_json::from_slice(body).map_err(|error| BatchError::Malformed(error.to_string()))?;
    check_count(operations.len())?;
    operations.iter().try_for_each(|operation| {
        operation.operation_type.check_members(operation.id.is_some(), operation.resource_body.is_some())
    })?;
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
            indexing_directive: None,
            time_to_live_seconds: None,
            minimal_return_preference: None,
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
}

impl<'a> From<BatchOperation<'a>> for RequestedOperation<'a> {
    fn from(operation: BatchOperation<'a>) -> RequestedOperation<'a> {
        RequestedOperation {
            operation_type: operation.operation_type,
            partition_key: operation.partition_key_text(),
            id: operation.id,
            resource_body: operation.resource_body.map(|body| body.get().as_bytes()),
            if_match: operation.if_match,
            if_none_match: operation.if_none_match,
            indexing_directive: operation.indexing_directive,
            time_to_live_seconds: operation.time_to_live_seconds,
            minimal_return_preference: operation.minimal_return_preference.unwrap_or(false),
        }
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

/// Writes results as a JSON array. Item bodies are copied unchanged.
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

/// Parses the JSON array of a batch response, as a client does.
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
