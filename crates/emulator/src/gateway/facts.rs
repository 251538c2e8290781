//! What fault rules want to know about a request, found out before anything is decided about it.
//!
//! In: a request as it arrived, authorized or not. Out: [`Known`]: names instead of `_rid`s, and the
//! physical partition a key lies in. Only asked for while there are rules.

use std::sync::Arc;

use http::request::Parts;
use protocol::container::KeyCoverage;
use protocol::partition::{PartitionKey, PartitionKeyHeader, effective_key};
use protocol::resource_path::{ResourcePath, ResourceType};
use serde_json::Value;
use smol_str::SmolStr;

use super::route::route;
use super::{
    Account, ConflictVerb, DatabaseVerb, FeedVerb, ItemOperation, OfferVerb, OffersVerb, Operation,
    RequestHeaders, ResourceVerb, UnsupportedVerb,
};
use crate::catalog::ContainerEntry;
use crate::faults::{OperationKind, RequestAttributes, ResourceKind};

/// The facts of one request.
#[derive(Debug, Default)]
pub(super) struct Known {
    operation: Option<OperationKind>,
    resource: Option<ResourceKind>,
    database: Option<SmolStr>,
    container: Option<SmolStr>,
    partition_key: Option<Value>,
    partition_key_range: Option<u32>,
    /// What the operation is called, for those who look at requests afterwards.
    pub(super) label: Option<&'static str>,
}

impl Known {
    /// What can be said about a request. Whatever makes no sense stays unknown.
    pub(super) fn about(parts: &Parts, headers: &RequestHeaders<'_>, account: &Account) -> Known {
        let Ok(path) = ResourcePath::parse(parts.uri.path()) else { return Known::default() };
        let operation = route(&parts.method, &path, headers).ok();
        let snapshot = account.catalog.snapshot();
        let database_id = path.id_of(ResourceType::Database);
        let database = database_id.and_then(|id| snapshot.database(id));
        let container_id = path.id_of(ResourceType::Container);
        let container = container_id.and_then(|id| database?.container(id));
        Known {
            operation: operation.as_ref().map(kind_of),
            label: operation.as_ref().map(Operation::label),
            resource: Some(match operation {
                Some(Operation::Items(..)) => ResourceKind::Item,
                _ => ResourceKind::from(path.resource_type()),
            }),
            // What does not exist is still called something.
            database: database.map(|entry| entry.id.clone()).or_else(|| database_id.map(SmolStr::from)),
            container: container.map(|entry| entry.id.clone()).or_else(|| container_id.map(SmolStr::from)),
            partition_key: partition_key(headers),
            partition_key_range: range_of(headers, container),
        }
    }

    /// The attributes that fault rules match; which region was asked is added later.
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

/// The one physical partition the request goes to, by its own words or by its key.
fn range_of(headers: &RequestHeaders<'_>, container: Option<&Arc<ContainerEntry>>) -> Option<u32> {
    if let Some(id) = text(headers.partition_key_range_id) {
        // Some clients put the container in front: `{rid},{id}`.
        return id.rsplit(',').next()?.parse().ok();
    }
    let container = container?;
    let PartitionKeyHeader::Key(key) = PartitionKey::parse_header(text(headers.partition_key)?).ok()? else {
        return None;
    };
    let schema = container.store.schema();
    let is_complete = schema.partition_key.coverage(&key) == KeyCoverage::Complete;
    let epk = is_complete.then(|| effective_key(&schema.partition_key, &key))?;
    Some(container.store.partition_of(&epk).identity.id)
}

fn kind_of(operation: &Operation<'_>) -> OperationKind {
    match operation {
        Operation::ReadAccount => OperationKind::Read,
        Operation::Databases(verb)
        | Operation::Containers(_, verb)
        | Operation::Users(_, verb)
        | Operation::Permissions(_, verb) => match verb {
            FeedVerb::List => OperationKind::ReadFeed,
            FeedVerb::Create => OperationKind::Create,
            FeedVerb::Upsert => OperationKind::Upsert,
            FeedVerb::Query => OperationKind::Query,
        },
        Operation::Container(_, verb) | Operation::User(_, verb) | Operation::Permission(_, _, verb) => {
            match verb {
                ResourceVerb::Read => OperationKind::Read,
                ResourceVerb::Replace => OperationKind::Replace,
                ResourceVerb::Delete => OperationKind::Delete,
            }
        }
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
        Operation::Items(_, operation) => item_kind_of(operation),
        Operation::Unsupported(request) => match request.verb {
            UnsupportedVerb::List => OperationKind::ReadFeed,
            UnsupportedVerb::Find => OperationKind::Read,
            UnsupportedVerb::Use => OperationKind::Create,
        },
    }
}

fn item_kind_of(operation: &ItemOperation<'_>) -> OperationKind {
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
