//! One operation of a batch: what was asked, and what came of it.

use std::sync::Arc;

use protocol::partition::EffectivePartitionKey;
use protocol::status::{Status, SubStatus};
use sql::value::write_json_string;
use sql::{Context, Value};

use super::partition_key::{self, Address};
use super::patch::Patch;
use super::write_reply;
use crate::charge;
use crate::clock::Ticks;
use crate::gateway::ServiceError;
use crate::handlers::ItemRequest;
use crate::store::{Document, Item, Precondition, Schema, Transaction, WriteError, Written};

/// An operation as the batch states it.
pub(super) struct BatchOperation {
    kind: Kind,
    /// The id it names, or the one inside its document.
    id: String,
    if_match: Option<String>,
    if_none_match: Option<String>,
    /// Header form, in operations that stand for themselves.
    partition_key: Option<String>,
}

enum Kind {
    Create(Value),
    Upsert(Value),
    Replace(Value),
    Patch(Patch),
    Read,
    Delete,
}

/// What came of an operation.
pub(super) struct Performed {
    status: Status,
    sub_status: SubStatus,
    charge: f64,
    item: Option<Arc<Item>>,
    is_read: bool,
    message: Option<String>,
}

impl BatchOperation {
    /// Reads `{"operationType":…,"id":…,"resourceBody":…,…}`.
    pub(super) fn read(operation: &Value) -> Result<BatchOperation, ServiceError> {
        let text = |member: &str| operation.member(member).as_str().map(str::to_owned);
        let body = || match operation.member("resourceBody") {
            Value::Undefined => {
                Err(ServiceError::bad_request("A batch operation that writes needs a 'resourceBody'."))
            }
            value => Ok(value.clone()),
        };
        let word = text("operationType").unwrap_or_default();
        let kind = match word.to_ascii_lowercase().as_str() {
            "create" => Kind::Create(body()?),
            "upsert" => Kind::Upsert(body()?),
            "replace" => Kind::Replace(body()?),
            "patch" => Kind::Patch(Patch::read(&body()?)?),
            "read" => Kind::Read,
            "delete" => Kind::Delete,
            _ => {
                return Err(ServiceError::bad_request(format!(
                    "'{word}' is not a batch operation; use Create, Upsert, Replace, Patch, Read or Delete."
                )));
            }
        };
        let id =
            text("id").or_else(|| operation.member("resourceBody").member("id").as_str().map(str::to_owned));
        // Some clients send the key as text, some as the list itself.
        let partition_key = match operation.member("partitionKey") {
            Value::Undefined | Value::Null => None,
            Value::String(text) => Some(text.to_string()),
            list => Some(list.to_string()),
        };
        // A precondition that cannot be read must not be taken for none.
        let tag = |member: &str| match operation.member(member) {
            Value::Undefined | Value::Null => Ok(None),
            Value::String(tag) => Ok((!tag.is_empty()).then(|| tag.to_string())),
            _ => Err(ServiceError::bad_request(format!("The '{member}' of a batch operation must be text."))),
        };
        Ok(BatchOperation {
            kind,
            id: id.unwrap_or_default(),
            if_match: tag("ifMatch")?,
            if_none_match: tag("ifNoneMatch")?,
            partition_key,
        })
    }

    /// Where an operation that stands for itself belongs.
    pub(super) fn address(
        &self,
        request: &ItemRequest<'_>,
        schema: &Arc<Schema>,
    ) -> Result<Address, ServiceError> {
        match &self.partition_key {
            Some(text) => {
                let key = partition_key::parse(text, schema)?.ok_or_else(partition_key::mismatch)?;
                partition_key::address_of(request, schema, &key)
            }
            None => match &self.kind {
                Kind::Create(document) | Kind::Upsert(document) | Kind::Replace(document) => {
                    partition_key::address_of(request, schema, &schema.extract_key(document))
                }
                Kind::Patch(_) | Kind::Read | Kind::Delete => Err(partition_key::mismatch()),
            },
        }
    }

    /// Does it.
    pub(super) fn perform(
        &self,
        transaction: &mut Transaction<'_>,
        epk: &EffectivePartitionKey,
        now: Ticks,
    ) -> Performed {
        match self.try_perform(transaction, epk, now) {
            Ok(performed) => performed,
            Err(error) => Performed::refused(&error.into()),
        }
    }

    fn try_perform(
        &self,
        transaction: &mut Transaction<'_>,
        epk: &EffectivePartitionKey,
        now: Ticks,
    ) -> Result<Performed, WriteError> {
        let precondition = self.precondition();
        match &self.kind {
            Kind::Create(value) => {
                let document = document(value, transaction, epk)?;
                Ok(Performed::stored(transaction.create(&document)?, 0.0))
            }
            Kind::Upsert(value) => {
                let document = document(value, transaction, epk)?;
                Ok(Performed::stored(transaction.upsert(&document, precondition)?, 0.0))
            }
            Kind::Replace(value) => {
                let document = document(value, transaction, epk)?;
                Ok(Performed::stored(transaction.replace(&self.id, &document, precondition)?, 0.0))
            }
            Kind::Patch(patch) => {
                let schema = Arc::clone(transaction.schema());
                let context = Context { now: now.0, random_seed: 0 };
                let change = |item: &Value| patch.apply(item, &schema, context);
                let written = transaction.patch(epk, &self.id, precondition, change)?;
                Ok(Performed::stored(written, charge::patch(patch.len())))
            }
            Kind::Read => Ok(self.performed_read(transaction.read(epk, &self.id)?)),
            Kind::Delete => {
                let written = transaction.delete(epk, &self.id, precondition)?;
                let cost = charge::create(written.item.size(), written.terms_changed);
                Ok(Performed::new(Status::NO_CONTENT, cost))
            }
        }
    }

    fn performed_read(&self, item: Arc<Item>) -> Performed {
        let unchanged = self.if_none_match.as_deref().is_some_and(|known| known == item.etag_str());
        let status = if unchanged { Status::NOT_MODIFIED } else { Status::OK };
        let cost = charge::read(item.size());
        Performed { item: (!unchanged).then_some(item), is_read: true, ..Performed::new(status, cost) }
    }

    fn precondition(&self) -> Precondition<'_> {
        match (&self.if_match, self.if_none_match.as_deref()) {
            (Some(etag), _) => Precondition::IfMatch(etag),
            (None, Some("*")) => Precondition::IfAbsent,
            (None, _) => Precondition::None,
        }
    }
}

/// The document, which must belong to the batch's logical partition.
fn document(
    value: &Value,
    transaction: &Transaction<'_>,
    epk: &EffectivePartitionKey,
) -> Result<Document, WriteError> {
    let document = Document::from_value(value, transaction.schema(), transaction.now())?;
    if document.epk == *epk { Ok(document) } else { Err(WriteError::KeyMismatch) }
}

impl Performed {
    fn new(status: Status, charge: f64) -> Performed {
        Performed { status, sub_status: SubStatus::NONE, charge, item: None, is_read: false, message: None }
    }

    fn stored(written: Written, extra: f64) -> Performed {
        let status = if written.previous.is_some() { Status::OK } else { Status::CREATED };
        let cost = write_reply::cost(&written) + extra;
        Performed { item: Some(written.item), ..Performed::new(status, cost) }
    }

    /// Not done because another operation failed: 424.
    pub(super) fn skipped() -> Performed {
        Performed::new(Status::FAILED_DEPENDENCY, 0.0)
    }

    /// Not done for a reason of its own.
    pub(super) fn refused(refusal: &ServiceError) -> Performed {
        Performed {
            sub_status: refusal.sub_status,
            message: Some(refusal.message.clone()),
            ..Performed::new(refusal.status, refusal.charge.unwrap_or(charge::MISS))
        }
    }

    /// Bytes of the item that go into the answer.
    pub(super) fn body_bytes(&self, minimal: bool) -> usize {
        match &self.item {
            Some(item) if self.is_read || !minimal => item.body_bytes().len(),
            _ => 0,
        }
    }

    pub(super) fn is_failure(&self) -> bool {
        self.status.0 >= 400
    }

    pub(super) fn charge(&self) -> f64 {
        self.charge
    }
}

/// The list of results, in the order of the operations.
pub(super) fn write_results(performed: &[Performed], minimal: bool) -> Vec<u8> {
    let mut text = Vec::with_capacity(256 * performed.len());
    text.push(b'[');
    for (at, outcome) in performed.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        write_result(outcome, minimal, &mut text);
    }
    text.push(b']');
    text
}

fn write_result(outcome: &Performed, minimal: bool, text: &mut Vec<u8>) {
    text.extend_from_slice(format!("{{\"statusCode\":{}", outcome.status.0).as_bytes());
    if !outcome.sub_status.is_none() {
        text.extend_from_slice(format!(",\"subStatusCode\":{}", outcome.sub_status.0).as_bytes());
    }
    text.extend_from_slice(format!(",\"requestCharge\":{:.2}", outcome.charge).as_bytes());
    if let Some(message) = &outcome.message {
        text.extend_from_slice(b",\"message\":");
        write_json_string(message, text);
    }
    if let Some(item) = &outcome.item {
        text.extend_from_slice(b",\"eTag\":");
        write_json_string(item.etag_str(), text);
        if outcome.is_read || !minimal {
            text.extend_from_slice(b",\"resourceBody\":");
            text.extend_from_slice(item.body_bytes());
        }
    }
    text.push(b'}');
}
