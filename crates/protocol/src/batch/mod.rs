//! Batch requests: many operations in one request, and their results.
//!
//! Input and output: bodies in one of two encodings, JSON arrays or the HybridRow records of the .NET SDK. Item
//! bodies inside them are not parsed, so that they are stored as they were sent. Executing the operations is
//! left to the server.

mod json; // arrays of objects, as most clients send them
mod rows; // records of rows, as the .NET SDK sends them

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::hybrid_row::{self, HybridRowError};
use crate::status::{Status, SubStatus};

pub use json::{BatchOperation, parse_operations, parse_results, write_results};

/// The largest number of operations in one batch.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// The largest body of a batch request, in bytes.
pub const BATCH_BYTES_MAX: usize = 2_202_010;

/// How the operations of a batch request are written; its response is written in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchEncoding {
    /// A JSON array, as most clients send it.
    Json,
    /// HybridRow records, as the .NET SDK sends them.
    HybridRow,
}

/// A batch request as a server reads it.
#[derive(Clone, Debug)]
pub struct BatchRequest<'a> {
    /// The encoding of the request, and of its response.
    pub encoding: BatchEncoding,
    /// The operations, in the order in which they are executed.
    pub operations: Vec<RequestedOperation<'a>>,
}

/// One operation of a batch request, whatever its encoding.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestedOperation<'a> {
    /// The type of the operation.
    pub operation_type: BatchOperationType,
    /// The id of the item. For creates and upserts it is in the body.
    pub id: Option<Cow<'a, str>>,
    /// The partition key of the item in header form, if the request's headers do not have it.
    pub partition_key: Option<Cow<'a, str>>,
    /// The item, or the operations of a patch; not parsed.
    pub resource_body: Option<&'a [u8]>,
    /// Executes the operation only if the item still has this ETag.
    pub if_match: Option<Cow<'a, str>>,
    /// Executes the operation only if the item no longer has this ETag.
    pub if_none_match: Option<Cow<'a, str>>,
    /// Whether the item is indexed: `Default`, `Include` or `Exclude`.
    pub indexing_directive: Option<Cow<'a, str>>,
    /// The lifetime of the item, where it is not in the body.
    pub time_to_live_seconds: Option<i32>,
    /// Whether the result omits the item.
    pub minimal_return_preference: bool,
}

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

    /// Checks that the properties that an operation of this type must have are present.
    fn check_members(self, has_id: bool, has_body: bool) -> Result<(), BatchError> {
        for member in self.needs() {
            let (member, is_present) = match member {
                Member::Id => ("id", has_id),
                Member::ResourceBody => ("resourceBody", has_body),
            };
            if !is_present {
                return Err(BatchError::MissingMember { operation: self.name(), member });
            }
        }
        Ok(())
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
    #[error("Request size is too large")]
    TooLarge,
    /// The body is not a list of operations.
    #[error("The batch is not a JSON list of operations: {0}")]
    Malformed(String),
    /// The body is not a sequence of HybridRow records.
    #[error("The batch is not a sequence of HybridRow records: {0}")]
    MalformedRows(#[from] HybridRowError),
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
            | BatchError::MalformedRows(_)
            | BatchError::MissingMember { .. } => Status::BAD_REQUEST,
        }
    }
}

impl<'a> BatchRequest<'a> {
    /// Parses the body of a batch request, whose first byte tells the encodings apart.
    ///
    /// Cost: one pass; allocates the list, and texts only if they have escapes.
    pub fn parse(body: &'a [u8]) -> Result<BatchRequest<'a>, BatchError> {
        if body.len() > BATCH_BYTES_MAX {
            return Err(BatchError::TooLarge);
        }
        if !hybrid_row::is_hybrid_row(body) {
            let operations = parse_operations(body)?.into_iter().map(RequestedOperation::from).collect();
            return Ok(BatchRequest { encoding: BatchEncoding::Json, operations });
        }
        let operations = rows::parse_operations(body)?;
        check_count(operations.len())?;
        operations.iter().try_for_each(|operation| {
            let RequestedOperation { operation_type, id, resource_body, .. } = operation;
            operation_type.check_members(id.is_some(), resource_body.is_some())
        })?;
        Ok(BatchRequest { encoding: BatchEncoding::HybridRow, operations })
    }
}

impl BatchEncoding {
    /// Writes the body of a response. Item bodies are copied unchanged.
    pub fn write_results<B: AsRef<[u8]>>(self, results: &[BatchResult<B>]) -> Vec<u8> {
        match self {
            BatchEncoding::Json => json::write_results(results),
            BatchEncoding::HybridRow => rows::write_results(results),
        }
    }
}

fn check_count(operations: usize) -> Result<(), BatchError> {
    match operations {
        0 => Err(BatchError::Empty),
        1..=BATCH_OPERATIONS_MAX => Ok(()),
        _ => Err(BatchError::TooMany),
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

/// The status of the whole response: 207 if any operation failed, or did nothing because of its condition.
pub fn envelope_status<B>(results: &[BatchResult<B>]) -> Status {
    if results.iter().all(|result| result.status.is_success()) { Status::OK } else { Status::MULTI_STATUS }
}

#[cfg(test)]
mod tests;
