//! One operation of a batch: made ready before the writer's turn, performed within it.
//!
//! In: an operation as the batch states it. Out: its result. Reading the list of operations and
//! writing the list of results is `protocol`'s affair.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use protocol::batch::{BatchOperation, BatchOperationType, BatchResult};
use protocol::partition::EffectivePartitionKey;
use protocol::status::Status;
use sql::{QueryContext, Value};

use super::partition_key::{self, Address};
use super::patch::Patch;
use super::write_reply;
use crate::handlers::ItemRequest;
use crate::response::ServiceError;
use clock::Ticks;
use engine::charge;
use engine::disk::DiskError;
use engine::items::Item;
use engine::store::{ContainerSchema, Document, Precondition, Transaction, WriteError, WrittenItem};

/// What came of an operation.
pub(super) type Performed = BatchResult<Bytes>;

/// An operation that is ready to be performed.
pub(super) struct ReadyOperation<'a> {
    kind: Kind,
    id: Cow<'a, str>,
    if_match: Option<Cow<'a, str>>,
    if_none_match: Option<Cow<'a, str>>,
    /// Header form, in operations that stand for themselves.
    partition_key: Option<Cow<'a, str>>,
}

enum Kind {
    Create(Document),
    Upsert(Document),
    Replace(Document),
    Patch(Patch),
    Read,
    Delete,
}

impl<'a> ReadyOperation<'a> {
    /// Reads the item or the instructions inside.
    pub(super) fn new(
        operation: BatchOperation<'a>,
        schema: &Arc<ContainerSchema>,
        now: u64,
    ) -> Result<ReadyOperation<'a>, ServiceError> {
        let partition_key = operation.partition_key_text();
        let body = operation.resource_body.map_or("", |body| body.get()).as_bytes();
        let document = || Document::parse(body, schema, now);
        let kind = match operation.operation_type {
            BatchOperationType::Create => Kind::Create(document()?),
            BatchOperationType::Upsert => Kind::Upsert(document()?),
            BatchOperationType::Replace => Kind::Replace(document()?),
            BatchOperationType::Patch => Kind::Patch(Patch::parse(body)?),
            BatchOperationType::Read => Kind::Read,
            BatchOperationType::Delete => Kind::Delete,
        };
        let stated = |tag: Option<Cow<'a, str>>| tag.filter(|tag| !tag.is_empty());
        Ok(ReadyOperation {
            kind,
            id: operation.id.unwrap_or_default(),
            if_match: stated(operation.if_match),
            if_none_match: stated(operation.if_none_match),
            partition_key,
        })
    }

    /// Where an operation that stands for itself belongs.
    pub(super) fn address(
        &self,
        request: &ItemRequest<'_>,
        schema: &ContainerSchema,
    ) -> Result<Address, ServiceError> {
        match (&self.partition_key, &self.kind) {
            (Some(text), _) => {
                let key = partition_key::parse(text, schema)?.ok_or_else(partition_key::mismatch)?;
                partition_key::address_of(request, schema, &key)
            }
            (None, Kind::Create(document) | Kind::Upsert(document) | Kind::Replace(document)) => {
                Ok(Address::at(request, document.epk.clone()))
            }
            (None, Kind::Patch(_) | Kind::Read | Kind::Delete) => Err(partition_key::mismatch()),
        }
    }

    /// Refuses an operation that states another logical partition than that of its batch.
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

    /// Does it.
    pub(super) fn perform(
        &self,
        transaction: &mut Transaction<'_>,
        epk: &EffectivePartitionKey,
        how: How,
    ) -> Performed {
        match self.try_perform(transaction, epk, how) {
            Ok(performed) => performed,
            Err(error) => refused(&error.into()),
        }
    }

    fn try_perform(
        &self,
        transaction: &mut Transaction<'_>,
        epk: &EffectivePartitionKey,
        how: How,
    ) -> Result<Performed, WriteError> {
        let precondition = self.precondition();
        match &self.kind {
            Kind::Create(document) | Kind::Upsert(document) | Kind::Replace(document)
                if document.epk != *epk =>
            {
                Err(WriteError::PartitionKeyMismatch)
            }
            Kind::Create(document) => Ok(how.stored(&transaction.create(document)?, 0.0)),
            Kind::Upsert(document) => Ok(how.stored(&transaction.upsert(document, precondition)?, 0.0)),
            Kind::Replace(document) => {
                Ok(how.stored(&transaction.replace(&self.id, document, precondition)?, 0.0))
            }
            Kind::Patch(patch) => {
                let schema = Arc::clone(transaction.schema());
                let context = QueryContext { now: how.now.0, random_seed: 0 };
                let change = |item: &Value| patch.apply(item, &schema, context);
                let written = transaction.patch(epk, &self.id, precondition, change)?;
                Ok(how.stored(&written, charge::patch(patch.len())))
            }
            Kind::Read => Ok(self.read(&*transaction.read(epk, &self.id)?)),
            Kind::Delete => {
                let written = transaction.delete(epk, &self.id, precondition)?;
                let cost = charge::create(written.item.size(), written.terms_changed);
                Ok(performed(Status::NO_CONTENT, cost))
            }
        }
    }

    fn read(&self, item: &Item) -> Performed {
        let unchanged = self.if_none_match.as_deref().is_some_and(|known| known == item.etag_str());
        let cost = charge::read(item.size());
        if unchanged {
            return performed(Status::NOT_MODIFIED, cost);
        }
        BatchResult {
            etag: Some(item.etag_str().to_owned()),
            resource_body: Some(item.body()),
            ..performed(Status::OK, cost)
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

/// What all operations of a batch have in common.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// When they happen.
    pub(super) now: Ticks,
    /// Whether the client does not want items back that it wrote.
    pub(super) minimal: bool,
}

impl How {
    fn stored(self, written: &WrittenItem, extra: f64) -> Performed {
        let status = if written.previous.is_some() { Status::OK } else { Status::CREATED };
        BatchResult {
            etag: Some(written.item.etag_str().to_owned()),
            resource_body: (!self.minimal).then(|| written.item.body()),
            ..performed(status, write_reply::cost(written) + extra)
        }
    }
}

fn performed(status: Status, charge: f64) -> Performed {
    // As precise as the header: two digits.
    BatchResult::new(status, (charge * 100.0).round() / 100.0)
}

/// The result of an operation that failed, as the error that undoes its write.
pub(super) struct FailedOperation(pub(super) Performed);

impl From<DiskError> for FailedOperation {
    fn from(error: DiskError) -> FailedOperation {
        FailedOperation(refused(&error.into()))
    }
}

/// What an operation reports that was not done for a reason of its own.
pub(super) fn refused(refusal: &ServiceError) -> Performed {
    BatchResult {
        sub_status: refusal.sub_status,
        message: Some(refusal.message.clone()),
        retry_after_ms: refusal.retry_after.and_then(|wait| u64::try_from(wait.as_millis()).ok()),
        ..performed(refusal.status, refusal.charge.unwrap_or(charge::NOT_FOUND))
    }
}
