//! What fault rules match on: the attributes of a request, before anything is decided about it.
//!
//! Input: a request as it arrived, authorized or not. Output: a [`RequestDescription`] with names instead of
//! `_rid`s, and the physical partition of the key. Only computed while there are rules.

use std::sync::Arc;

use http::request::Parts;
use protocol::container::KeyCompleteness;
use protocol::partition::{PartitionKey, PartitionKeyHeader, effective_key};
use protocol::resource_path::ResourceType;
use serde_json::Value;
use smol_str::SmolStr;

use crate::faults::{OperationKind, RequestAttributes, ResourceKind};
use crate::request::{
    ConflictVerb, DatabaseVerb, FeedVerb, ItemOperation, OfferVerb, OffersVerb, Operation, RequestHeaders,
    ResourceVerb, ScriptVerb, UnsupportedVerb,
};
use crate::request::{resource_path, route};
use engine::account::Account;
use engine::catalog::ContainerEntry;

/// The attributes of one request, owned.
#[derive(Debug, Default)]
pub(super) struct RequestDescription {
    operation: Option<OperationKind>,
    resource: Option<ResourceKind>,
    database: Option<SmolStr>,
    container: Option<SmolStr>,
    partition_key: Option<Value>,
    partition_key_range: Option<u32>,
    /// The label of the operation, for the request log.
    pub(super) label: Option<&'static str>,
}

impl RequestDescription {
    /// Describes a request. Attributes that cannot be parsed stay unknown.
    pub(super) fn describe(
        parts: &Parts,
        headers: &RequestHeaders<'_>,
        account: &Account,
    ) -> RequestDescription {
        let Ok(path) = resource_path(&parts.uri) else { return RequestDescription::default() };
        let operation = route(&parts.method, &path, headers).ok();
        let snapshot = account.catalog.snapshot();
        let database_id = path.id_of(ResourceType::Database);
        let database = database_id.and_then(|id| snapshot.database(id));
        let container_id = path.id_of(ResourceType::Container);
        let container = container_id.and_then(|id| database?.container(id));
        RequestDescription {
            operation: operation.as_ref().map(operation_kind),
            label: operation.as_ref().map(Operation::label),
            resource: Some(match operation {
                Some(Operation::Items(..)) => ResourceKind::Item,
                _ => ResourceKind::from(path.resource_type()),
            }),
            // A resource that does not exist still has the name in the path.
            database: database.map(|entry| entry.id.clone()).or_else(|| database_id.map(SmolStr::from)),
            container: container.map(|entry| entry.id.clone()).or_else(|| container_id.map(SmolStr::from)),
            partition_key: partition_key(headers),
            partition_key_range: partition_range(headers, container),
        }
    }

    /// The attributes that fault rules match on, except for the region.
    pub(super) fn attributes<'a>(&'a self, parts: &'a Parts) -> RequestAttributes<'a> {
        RequestAttributes {
            method: parts.method.as_str(),
            operation: self.operation,
            resource: self.resource,
            database: self.database.as_deref(),
            container: self.container.as_deref(),
            partition_key: self.partition_key.as_ref(),
            partition_key_range: self.partition_key_range,
            ..RequestAttributes::default()
        }
    }
}

fn text(value: Option<&http::HeaderValue>) -> Option<&str> {
    value.and_then(|value| std::str::from_utf8(value.as_bytes()).ok()).filter(|text| !text.is_empty())
}

fn partition_key(headers: &RequestHeaders<'_>) -> Option<Value> {
    serde_json::from_str(text(headers.partition_key)?).ok()
}

/// The physical partition that the request is for, by its range id header or its partition key.
fn partition_range(headers: &RequestHeaders<'_>, container: Option<&Arc<ContainerEntry>>) -> Option<u32> {
    if let Some(id) = text(headers.partition_key_range_id) {
        // Some clients put the container in front: `{rid},{id}`.
        return id.rsplit(',').next()?.parse().ok();
    }
    let container = container?;
    let PartitionKeyHeader::Key(key) = PartitionKey::parse_header(text(headers.partition_key)?).ok()? else {
        return None;
    };
    let schema = container.store.schema();
    let is_complete = schema.partition_key.completeness(&key) == KeyCompleteness::Complete;
    let epk = is_complete.then(|| effective_key(&schema.partition_key, &key))?;
    Some(container.store.partition_of(&epk).identity.id)
}

fn operation_kind(operation: &Operation<'_>) -> OperationKind {
    match operation {
        Operation::ReadAccount => OperationKind::Read,
        Operation::Databases(verb)
        | Operation::Containers(_, verb)
        | Operation::Users(_, verb)
        | Operation::ClientEncryptionKeys(_, verb)
        | Operation::Scripts(_, _, verb)
        | Operation::Permissions(_, verb) => match verb {
            FeedVerb::List => OperationKind::ReadFeed,
            FeedVerb::Create => OperationKind::Create,
            FeedVerb::Upsert => OperationKind::Upsert,
            FeedVerb::Query => OperationKind::Query,
        },
        Operation::Container(_, verb)
        | Operation::User(_, verb)
        | Operation::ClientEncryptionKey(_, verb)
        | Operation::Permission(_, _, verb)
        | Operation::Script(_, _, ScriptVerb::Manage(verb)) => match verb {
            ResourceVerb::Read => OperationKind::Read,
            ResourceVerb::Replace => OperationKind::Replace,
            ResourceVerb::Delete => OperationKind::Delete,
        },
        Operation::Script(_, _, ScriptVerb::Execute) => OperationKind::Create,
        Operation::Database(_, DatabaseVerb::Read) | Operation::Offer(_, OfferVerb::Read) => {
            OperationKind::Read
        }
        Operation::Database(_, DatabaseVerb::Delete) => OperationKind::Delete,
        Operation::Offer(_, OfferVerb::Replace) => OperationKind::Replace,
        Operation::Offers(OffersVerb::List) | Operation::PartitionRanges(_) => OperationKind::ReadFeed,
        Operation::Offers(OffersVerb::Query) | Operation::Conflicts(_, ConflictVerb::Query) => {
            OperationKind::Query
        }
        Operation::Conflicts(_, ConflictVerb::List) => OperationKind::ReadFeed,
        Operation::Conflicts(_, ConflictVerb::Read(_)) => OperationKind::Read,
        Operation::Conflicts(_, ConflictVerb::Delete(_)) => OperationKind::Delete,
        Operation::Items(_, operation) => item_operation_kind(operation),
        Operation::Unsupported(request) => match request.verb {
            UnsupportedVerb::List => OperationKind::ReadFeed,
            UnsupportedVerb::Find => OperationKind::Read,
            UnsupportedVerb::Use => OperationKind::Create,
        },
    }
}

fn item_operation_kind(operation: &ItemOperation<'_>) -> OperationKind {
    match operation {
        ItemOperation::Create => OperationKind::Create,
        ItemOperation::Upsert => OperationKind::Upsert,
        ItemOperation::Read(_) => OperationKind::Read,
        ItemOperation::Replace(_) => OperationKind::Replace,
        ItemOperation::Patch(_) => OperationKind::Patch,
        ItemOperation::Delete(_) => OperationKind::Delete,
        ItemOperation::ReadFeed => OperationKind::ReadFeed,
        ItemOperation::ChangeFeed => OperationKind::ChangeFeed,
        ItemOperation::Query => OperationKind::Query,
        ItemOperation::QueryPlan => OperationKind::QueryPlan,
        ItemOperation::Batch => OperationKind::Batch,
        ItemOperation::DeletePartition => OperationKind::DeletePartition,
    }
}
