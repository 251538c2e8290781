//! `execute_batch`: several operations on one logical partition, all or none.

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

/// Operations on items of one logical partition: all happen or none does. At most a hundred.
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
    entries: Vec<Entry>,
    /// The first value that has no JSON form.
    problem: Option<Error>,
}

#[derive(Debug)]
struct Entry {
    kind: BatchOperationType,
    id: Option<String>,
    body: Option<Box<RawValue>>,
    if_match: Option<String>,
}

impl Batch {
    /// A batch on the items of this key.
    pub fn new(key: impl Into<PartitionKey>) -> Batch {
        Batch { key: key.into(), entries: Vec::new(), problem: None }
    }

    /// Stores a new item.
    pub fn create(self, item: &(impl Serialize + ?Sized)) -> Batch {
        self.with_item(BatchOperationType::Create, None, item)
    }

    /// Stores an item, whether it is there or not.
    pub fn upsert(self, item: &(impl Serialize + ?Sized)) -> Batch {
        self.with_item(BatchOperationType::Upsert, None, item)
    }

    /// Writes over an item that is there.
    pub fn replace(self, id: &str, item: &(impl Serialize + ?Sized)) -> Batch {
        self.with_item(BatchOperationType::Replace, Some(id), item)
    }

    /// Changes parts of an item.
    pub fn patch(self, id: &str, patch: Patch) -> Batch {
        let body = patch.body();
        self.with_body(BatchOperationType::Patch, Some(id), body)
    }

    /// Reads an item as the operations before it leave it.
    pub fn read(mut self, id: &str) -> Batch {
        self.entries.push(Entry::on(BatchOperationType::Read, id));
        self
    }

    /// Removes an item.
    pub fn delete(mut self, id: &str) -> Batch {
        self.entries.push(Entry::on(BatchOperationType::Delete, id));
        self
    }

    /// Lets the operation added last happen only if its item still has this version.
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
                self.entries.push(Entry { kind, id, body: Some(body), if_match: None });
            }
            Err(problem) => {
                self.problem.get_or_insert(problem);
            }
        }
        self
    }
}

impl Entry {
    fn on(kind: BatchOperationType, id: &str) -> Entry {
        Entry { kind, id: Some(id.to_owned()), body: None, if_match: None }
    }

    fn on_the_wire(&self) -> BatchOperation<'_> {
        let mut operation = BatchOperation::new(self.kind);
        operation.id = self.id.as_deref().map(Cow::Borrowed);
        operation.resource_body = self.body.as_deref();
        operation.if_match = self.if_match.as_deref().map(Cow::Borrowed);
        operation
    }
}

/// What became of each operation of a batch, in order.
pub type BatchResponse = Response<Vec<BatchItem>>;

/// What became of one operation of a batch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BatchItem {
    /// Its own status.
    pub status: Status,
    /// Its own sub-status.
    pub sub_status: SubStatus,
    /// The version it left or read.
    pub etag: Option<String>,
    body: Vec<u8>,
}

impl BatchItem {
    /// The item, of an operation that answers with one.
    pub fn value<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        if self.body.is_empty() { Ok(None) } else { from_body(&self.body).map(Some) }
    }
}

impl ContainerClient {
    /// Carries out a batch. If one operation fails, none happens, and the error names it: its kind is that of
    /// the operation that failed.
    pub fn execute_batch(&self, batch: Batch) -> Call<BatchResponse> {
        let target = Target::items(self.name());
        let operation = operation(batch, target);
        Call::new(self.driver(), operation, read)
    }
}

fn operation(batch: Batch, target: Target) -> Result<Operation> {
    let Batch { key, entries, problem } = batch;
    if let Some(problem) = problem {
        return Err(problem);
    }
    let entries: Vec<_> = entries.iter().map(Entry::on_the_wire).collect();
    let operation = Operation::new(OperationKind::Batch, target)
        .with_scope(Scope::Key(key))
        .with_body(to_body(&entries)?)
        .with_header(names::BATCH_ATOMIC, "true");
    Ok(operation)
}

fn read(answer: driver::Response) -> Result<BatchResponse> {
    let results = parse_results(answer.body()).map_err(|error| {
        Error::new(ErrorKind::BadResponse, format!("the answer is not that of a batch: {error}"))
            .with_source(error)
    })?;
    // The one that failed; the others say that they depend on it.
    let failed = results
        .iter()
        .enumerate()
        .find(|(_, result)| result.status.0 >= 400 && result.status != Status::FAILED_DEPENDENCY);
    if let Some((index, result)) = failed {
        let what =
            result.message.clone().unwrap_or_else(|| format!("the service answered {}", result.status));
        let kind = ErrorKind::of_status(result.status, result.sub_status);
        let message = format!("operation {index} of the batch failed, so none happened: {what}");
        return Err(Error::new(kind, message)
            .with_status(result.status, result.sub_status)
            .with_diagnostics(answer.diagnostics().clone()));
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
    Ok(Response::with_value(items, answer))
}
