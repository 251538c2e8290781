//! One operation of a batch: prepared before the transaction, executed within it.
//!
//! Input: an operation as the batch states it. Output: its result. `protocol` parses the list of operations and
//! writes the list of results.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use protocol::batch::{BatchOperationType, BatchResult, RequestedOperation};
use protocol::partition::EffectivePartitionKey;
use protocol::status::Status;
use sql::{QueryContext, Value};

use super::body;
use super::item_write::{self, indexes};
use super::partition_key::{self, PartitionAddress};
use super::patch::Patch;
use crate::handlers::ItemRequest;
use crate::response::ServiceError;
use clock::Ticks;
use engine::charge;
use engine::disk::DiskError;
use engine::items::Item;
use engine::store::{ContainerSchema, Document, Precondition, Transaction, WriteError, WrittenItem};

/// The result of one operation.
pub(super) type OperationResult = BatchResult<Bytes>;

/// An operation that is ready to be executed.
pub(super) struct PreparedOperation<'a> {
    kind: PreparedKind,
    id: Cow<'a, str>,
    if_match: Option<Cow<'a, str>>,
    if_none_match: Option<Cow<'a, str>>,
    /// The partition key in header form, in operations of a bulk request.
    partition_key: Option<Cow<'a, str>>,
    /// Whether the result omits the item.
    minimal: bool,
}

enum PreparedKind {
    Create(Document),
    Upsert(Document),
    Replace(Document),
    Patch(Patch),
    Read,
    Delete,
}

impl<'a> PreparedOperation<'a> {
    /// Parses the item or the patch of an operation.
    pub(super) fn new(
        operation: RequestedOperation<'a>,
        schema: &Arc<ContainerSchema>,
        now: u64,
    ) -> Result<PreparedOperation<'a>, ServiceError> {
        check_options(&operation)?;
        let directive = operation.indexing_directive.as_deref().unwrap_or_default();
        let indexed = indexes(directive.as_bytes()).ok_or_else(|| {
            ServiceError::bad_request(format!("The indexing directive '{directive}' is invalid."))
        })?;
        let body = body::as_text(operation.resource_body.unwrap_or_default())?;
        let document = || Document::parse(&body, schema, now).map(|document| document.indexed(indexed));
        let kind = match operation.operation_type {
            BatchOperationType::Create => PreparedKind::Create(document()?),
            BatchOperationType::Upsert => PreparedKind::Upsert(document()?),
            BatchOperationType::Replace => PreparedKind::Replace(document()?),
            BatchOperationType::Patch => PreparedKind::Patch(Patch::parse(&body)?),
            BatchOperationType::Read => PreparedKind::Read,
            BatchOperationType::Delete => PreparedKind::Delete,
        };
        let non_empty = |tag: Option<Cow<'a, str>>| tag.filter(|tag| !tag.is_empty());
        Ok(PreparedOperation {
            kind,
            id: operation.id.unwrap_or_default(),
            if_match: non_empty(operation.if_match),
            if_none_match: non_empty(operation.if_none_match),
            partition_key: operation.partition_key,
            minimal: operation.minimal_return_preference,
        })
    }

    /// The logical partition of an operation in a bulk request.
    pub(super) fn address(
        &self,
        request: &ItemRequest<'_>,
        schema: &ContainerSchema,
    ) -> Result<PartitionAddress, ServiceError> {
        match (&self.partition_key, &self.kind) {
            (Some(text), _) => {
                let key = partition_key::parse(text, schema)?.ok_or_else(partition_key::mismatch)?;
                partition_key::address_of(request, schema, &key)
            }
            (
                None,
                PreparedKind::Create(document)
                | PreparedKind::Upsert(document)
                | PreparedKind::Replace(document),
            ) => PartitionAddress::at(request, document.epk.clone()),
            (None, PreparedKind::Patch(_) | PreparedKind::Read | PreparedKind::Delete) => {
                Err(partition_key::mismatch())
            }
        }
    }

    /// Rejects an operation whose logical partition is not that of its batch.
    pub(super) fn check_partition(
        &self,
        request: &ItemRequest<'_>,
        schema: &ContainerSchema,
        of_batch: &EffectivePartitionKey,
    ) -> Result<(), ServiceError> {
        if self.partition_key.is_none() || self.address(request, schema)?.epk == *of_batch {
            return Ok(());
        }
        Err(partition_key::mismatch())
    }

    /// Executes the operation within `transaction`.
    pub(super) fn execute(
        &self,
        transaction: &mut Transaction<'_>,
        epk: &EffectivePartitionKey,
        context: BatchContext,
    ) -> OperationResult {
        match self.try_execute(transaction, epk, context) {
            Ok(performed) => performed,
            Err(error) => failed_result(&error.into()),
        }
    }

    fn try_execute(
        &self,
        transaction: &mut Transaction<'_>,
        epk: &EffectivePartitionKey,
        context: BatchContext,
    ) -> Result<OperationResult, WriteError> {
        let context = BatchContext { minimal: context.minimal || self.minimal, ..context };
        let precondition = self.precondition();
        match &self.kind {
            PreparedKind::Create(document)
            | PreparedKind::Upsert(document)
            | PreparedKind::Replace(document)
                if document.epk != *epk =>
            {
                Err(WriteError::PartitionKeyMismatch)
            }
            PreparedKind::Create(document) => Ok(context.write_result(&transaction.create(document)?, 0.0)),
            PreparedKind::Upsert(document) => {
                Ok(context.write_result(&transaction.upsert(document, precondition)?, 0.0))
            }
            PreparedKind::Replace(document) => {
                Ok(context.write_result(&transaction.replace(&self.id, document, precondition)?, 0.0))
            }
            PreparedKind::Patch(patch) => {
                let schema = Arc::clone(transaction.schema());
                let sql_context = QueryContext { now: context.now.0, ..QueryContext::default() };
                let change = |item: &Value| patch.apply(item, &schema, sql_context);
                let written = transaction.patch(epk, &self.id, precondition, change)?;
                Ok(context.write_result(&written, charge::patch(patch.len())))
            }
            PreparedKind::Read => Ok(self.read(&*transaction.read(epk, &self.id)?)),
            PreparedKind::Delete => {
                let written = transaction.delete(epk, &self.id, precondition)?;
                let cost = charge::create(written.item.size(), written.terms_changed);
                Ok(operation_result(Status::NO_CONTENT, cost))
            }
        }
    }

    /// The result of a read. In a batch either condition says which version the client has.
    fn read(&self, item: &Item) -> OperationResult {
        let is_known = |tag: &Option<Cow<'_, str>>| tag.as_deref() == Some(item.etag_str());
        let unchanged = is_known(&self.if_match)
            || is_known(&self.if_none_match)
            || self.if_none_match.as_deref() == Some("*");
        let cost = charge::read(item.size());
        if unchanged {
            return operation_result(Status::NOT_MODIFIED, cost);
        }
        BatchResult {
            etag: Some(item.etag_str().to_owned()),
            resource_body: (!self.minimal).then(|| item.body()),
            ..operation_result(Status::OK, cost)
        }
    }

    fn precondition(&self) -> Precondition<'_> {
        match (&self.if_match, self.if_none_match.as_deref()) {
            (Some(etag), _) => Precondition::IfMatch(etag),
            (None, Some("*")) => Precondition::IfAbsent,
            (None, _) => Precondition::None,
        }
    }
}

/// Rejects an operation with an option that cannot be obeyed.
fn check_options(operation: &RequestedOperation<'_>) -> Result<(), ServiceError> {
    match operation.time_to_live_seconds {
        Some(_) => Err(ServiceError::bad_request(
            "'timeToLiveInSeconds' is not supported in a batch; set the property 'ttl' of the item.",
        )),
        None => Ok(()),
    }
}

/// What all operations of a batch share.
#[derive(Clone, Copy)]
pub(super) struct BatchContext {
    /// The account time of the batch.
    pub(super) now: Ticks,
    /// Whether results omit the items that were written.
    pub(super) minimal: bool,
}

impl BatchContext {
    fn write_result(self, written: &WrittenItem, extra: f64) -> OperationResult {
        let status = if written.previous.is_some() { Status::OK } else { Status::CREATED };
        BatchResult {
            etag: Some(written.item.etag_str().to_owned()),
            resource_body: (!self.minimal).then(|| written.item.body()),
            ..operation_result(status, item_write::write_charge(written) + extra)
        }
    }
}

fn operation_result(status: Status, charge: f64) -> OperationResult {
    // Two decimals, as in the request charge header.
    BatchResult::new(status, (charge * 100.0).round() / 100.0)
}

/// The result of an operation that failed, as the error that undoes its write.
pub(super) struct FailedOperation(pub(super) OperationResult);

impl From<DiskError> for FailedOperation {
    fn from(error: DiskError) -> FailedOperation {
        FailedOperation(failed_result(&error.into()))
    }
}

/// The result of an operation that failed with `error`.
pub(super) fn failed_result(error: &ServiceError) -> OperationResult {
    BatchResult {
        sub_status: error.sub_status,
        message: Some(error.message.clone()),
        retry_after_ms: error.retry_after.and_then(|wait| u64::try_from(wait.as_millis()).ok()),
        ..operation_result(error.status, error.charge.unwrap_or(charge::NOT_FOUND))
    }
}
