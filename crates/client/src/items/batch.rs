//! `execute_batch`: a transaction of several operations on one logical partition.

use std::borrow::Cow;

use driver::operation::{Operation, OperationKind, Scope, Target};
use driver::{Error, ErrorKind};
use protocol::batch::{BatchOperation, BatchOperationType, parse_results};
use protocol::headers as names;
use protocol::status::{Status, SubStatus};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use super::patch::Patch;
use crate::call::Call;
use crate::container::ContainerClient;
use crate::response::Response;
use crate::serialize::{from_body, to_body};
use crate::{PartitionKey, Result};

/// A transaction of up to 100 operations on items of one logical partition: all are applied or none.
///
/// ```
/// use perihelion::{Batch, Patch};
/// use serde_json::json;
///
/// let batch = Batch::new("ada")
///     .create(&json!({"id": "o-2", "customer": "ada"}))
///     .patch("account", Patch::new().increment("/orders", 1));
/// ```
#[derive(Debug)]
#[must_use = "a batch does nothing until it is executed"]
pub struct Batch {
    key: PartitionKey,
    entries: Vec<BatchOperationEntry>,
    /// The error of the first value that cannot be serialized.
    error: Option<Error>,
}

#[derive(Debug)]
struct BatchOperationEntry {
    kind: BatchOperationType,
    id: Option<String>,
    body: Option<Box<RawValue>>,
    if_match: Option<String>,
}

impl Batch {
    /// An empty batch on the items of this partition key.
    pub fn new(key: impl Into<PartitionKey>) -> Batch {
        Batch { key: key.into(), entries: Vec::new(), error: None }
    }

    /// Adds the creation of an item.
    pub fn create(self, item: &(impl Serialize + ?Sized)) -> Batch {
        self.with_item(BatchOperationType::Create, None, item)
    }

    /// Adds an operation that creates an item, or replaces the one with its id.
    pub fn upsert(self, item: &(impl Serialize + ?Sized)) -> Batch {
        self.with_item(BatchOperationType::Upsert, None, item)
    }

    /// Adds the replacement of an item that exists.
    pub fn replace(self, id: &str, item: &(impl Serialize + ?Sized)) -> Batch {
        self.with_item(BatchOperationType::Replace, Some(id), item)
    }

    /// Adds a patch of an item.
    pub fn patch(self, id: &str, patch: Patch) -> Batch {
        let body = patch.body();
        self.with_body(BatchOperationType::Patch, Some(id), body)
    }

    /// Adds a read of an item as it is after the operations before this one.
    pub fn read(mut self, id: &str) -> Batch {
        self.entries.push(BatchOperationEntry::new(BatchOperationType::Read, id));
        self
    }

    /// Adds the deletion of an item.
    pub fn delete(mut self, id: &str) -> Batch {
        self.entries.push(BatchOperationEntry::new(BatchOperationType::Delete, id));
        self
    }

    /// Makes the operation added last conditional: its item must still have this ETag.
    pub fn if_match(mut self, etag: impl Into<String>) -> Batch {
        if let Some(last) = self.entries.last_mut() {
            last.if_match = Some(etag.into());
        }
        self
    }

    fn with_item(
        self,
        kind: BatchOperationType,
        id: Option<&str>,
        item: &(impl Serialize + ?Sized),
    ) -> Batch {
        let body = to_raw_value(item).map_err(|error| {
            Error::new(ErrorKind::BadRequest, format!("an item of the batch has no JSON form: {error}"))
                .with_source(error)
        });
        self.with_body(kind, id, body)
    }

    fn with_body(mut self, kind: BatchOperationType, id: Option<&str>, body: Result<Box<RawValue>>) -> Batch {
        match body {
            Ok(body) => {
                let id = id.map(str::to_owned);
                self.entries.push(BatchOperationEntry { kind, id, body: Some(body), if_match: None });
            }
            Err(error) => {
                self.error.get_or_insert(error);
            }
        }
        self
    }
}

impl BatchOperationEntry {
    fn new(kind: BatchOperationType, id: &str) -> BatchOperationEntry {
        BatchOperationEntry { kind, id: Some(id.to_owned()), body: None, if_match: None }
    }

    fn to_wire(&self) -> BatchOperation<'_> {
        let mut operation = BatchOperation::new(self.kind);
        operation.id = self.id.as_deref().map(Cow::Borrowed);
        operation.resource_body = self.body.as_deref();
        operation.if_match = self.if_match.as_deref().map(Cow::Borrowed);
        operation
    }
}

/// The response to a batch: the result of each operation, in order.
pub type BatchResponse = Response<Vec<BatchItem>>;

/// The result of one operation of a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchItem {
    /// The status of this operation.
    pub status: Status,
    /// The sub-status of this operation.
    pub sub_status: SubStatus,
    /// The ETag of the item after this operation.
    pub etag: Option<String>,
    body: Vec<u8>,
}

impl BatchItem {
    /// The item, if the operation returned one.
    pub fn value<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        if self.body.is_empty() { Ok(None) } else { from_body(&self.body).map(Some) }
    }
}

impl ContainerClient {
    /// Executes a batch. If one operation fails, none is applied; the error has the kind of that operation and names it.
    pub fn execute_batch(&self, batch: Batch) -> Call<BatchResponse> {
        let target = Target::items(self.name());
        let operation = operation(batch, target);
        Call::new(self.driver(), operation, read)
    }
}

fn operation(batch: Batch, target: Target) -> Result<Operation> {
    let Batch { key, entries, error } = batch;
    if let Some(error) = error {
        return Err(error);
    }
    let entries: Vec<_> = entries.iter().map(BatchOperationEntry::to_wire).collect();
    let operation = Operation::new(OperationKind::Batch, target)
        .with_scope(Scope::Key(key))
        .with_body(to_body(&entries)?)
        .with_header(names::BATCH_ATOMIC, "true");
    Ok(operation)
}

fn read(response: driver::Response) -> Result<BatchResponse> {
    let results = parse_results(response.body()).map_err(|error| {
        Error::new(ErrorKind::BadResponse, format!("the response is not that of a batch: {error}"))
            .with_source(error)
    })?;
    // All other operations have the status of a failed dependency.
    let failed = results
        .iter()
        .enumerate()
        .find(|(_, result)| result.status.0 >= 400 && result.status != Status::FAILED_DEPENDENCY);
    if let Some((index, result)) = failed {
        let error = Error::of_result(result.status, result.sub_status, result.message.as_deref());
        let message = format!(
            "operation {index} of the batch (counted from 0) failed with {}, so none was applied: {}",
            result.status,
            error.message()
        );
        let error = match result.retry_after_ms {
            Some(wait) => error.with_retry_after(std::time::Duration::from_millis(wait)),
            None => error,
        };
        return Err(error.with_message(message).with_diagnostics(response.diagnostics().clone()));
    }
    let items = results
        .into_iter()
        .map(|result| BatchItem {
            status: result.status,
            sub_status: result.sub_status,
            etag: result.etag,
            body: result.resource_body.map(<[u8]>::to_vec).unwrap_or_default(),
        })
        .collect();
    Ok(Response::with_value(items, response))
}
