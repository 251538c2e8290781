//! The router: method, path and headers → [`Operation`].
//!
//! Pure. Names come out percent-decoded; whether they exist, and whether one is really a `_rid`, is decided by
//! the catalog. An unknown path is 404, a known path with an unsupported method is 405.

use http::{Method, Uri};
use protocol::headers as name;
use protocol::resource_path::{ResourcePath, ResourcePathError, ResourceType};

use super::headers::RequestHeaders;
use super::operation::{
    ClientEncryptionKeyIds, ConflictVerb, ContainerIds, DatabaseVerb, FeedVerb, Id, ItemOperation, OfferVerb,
    OffersVerb, Operation, ParentResource, ResourceVerb, ScriptVerb, Unsupported, UnsupportedVerb, UserIds,
};
use crate::response::ServiceError;

/// The resource that a URI addresses. Some clients leave the `?` of an item's id as it is, in the path and in
/// the signature, so what follows an item's id is part of it: no operation on items has a query string.
pub(crate) fn resource_path(uri: &Uri) -> Result<ResourcePath<'_>, ResourcePathError> {
    let path = ResourcePath::parse(uri.path())?;
    let names_item = path.resource_type() == ResourceType::Item && !path.is_feed();
    match uri.path_and_query().filter(|whole| names_item && whole.query().is_some()) {
        Some(whole) => ResourcePath::parse(whole.as_str()),
        None => Ok(path),
    }
}

/// Finds the operation of a request. Cost grows with the length of the path.
pub(crate) fn route<'a>(
    method: &Method,
    path: &ResourcePath<'a>,
    headers: &RequestHeaders<'_>,
) -> Result<Operation<'a>, ServiceError> {
    let operation = match path.resource_type() {
        ResourceType::Account => (*method == Method::GET).then_some(Operation::ReadAccount),
        ResourceType::Database => databases(method, path, headers)?,
        ResourceType::Container => {
            let database = id_of(path, ResourceType::Database)?;
            match last_id(path) {
                None => feed_verb(method, headers)?.map(|verb| Operation::Containers(database, verb)),
                Some(container) => resource_verb(method)
                    .map(|verb| Operation::Container(ContainerIds { database, container }, verb)),
            }
        }
        ResourceType::Item => {
            let ids = container_ids(path)?;
            let operation = match last_id(path) {
                None => items_operation(method, headers)?,
                Some(item) => item_operation(method, item),
            };
            operation.map(|operation| Operation::Items(ids, operation))
        }
        ResourceType::PartitionKeyRange => match last_id(path) {
            None if *method == Method::GET => Some(Operation::PartitionRanges(container_ids(path)?)),
            None => None,
            Some(_) => return Err(ServiceError::not_found()),
        },
        ResourceType::Conflict => conflict_verb(method, headers, last_id(path))?
            .map(|verb| container_ids(path).map(|ids| Operation::Conflicts(ids, verb)))
            .transpose()?,
        ResourceType::Operation => match path.id() {
            Some("partitionkeydelete") if *method == Method::POST => {
                Some(Operation::Items(container_ids(path)?, ItemOperation::DeletePartition))
            }
            Some("partitionkeydelete") => None,
            _ => return Err(ServiceError::not_found()),
        },
        ResourceType::User => {
            let database = id_of(path, ResourceType::Database)?;
            match last_id(path) {
                None => feed_verb(method, headers)?.map(|verb| Operation::Users(database, verb)),
                Some(user) => {
                    resource_verb(method).map(|verb| Operation::User(UserIds { database, user }, verb))
                }
            }
        }
        ResourceType::Permission => {
            let ids = UserIds {
                database: id_of(path, ResourceType::Database)?,
                user: id_of(path, ResourceType::User)?,
            };
            match last_id(path) {
                None => feed_verb(method, headers)?.map(|verb| Operation::Permissions(ids, verb)),
                Some(permission) => {
                    resource_verb(method).map(|verb| Operation::Permission(ids, permission, verb))
                }
            }
        }
        ResourceType::Offer => offers(method, path, headers)?,
        kind
        @ (ResourceType::StoredProcedure | ResourceType::Trigger | ResourceType::UserDefinedFunction) => {
            let ids = container_ids(path)?;
            match last_id(path) {
                None => feed_verb(method, headers)?.map(|verb| Operation::Scripts(ids, kind, verb)),
                Some(id) => script_verb(method, kind).map(|verb| Operation::Script(ids, (kind, id), verb)),
            }
        }
        ResourceType::ClientEncryptionKey => {
            let database = id_of(path, ResourceType::Database)?;
            match last_id(path) {
                None => {
                    feed_verb(method, headers)?.map(|verb| Operation::ClientEncryptionKeys(database, verb))
                }
                Some(key) => resource_verb(method).map(|verb| {
                    Operation::ClientEncryptionKey(ClientEncryptionKeyIds { database, key }, verb)
                }),
            }
        }
        ResourceType::Attachment | ResourceType::Schema | ResourceType::Address | ResourceType::Media => {
            Some(Operation::Unsupported(unsupported(method, path, headers)?))
        }
    };
    operation.ok_or_else(|| ServiceError::method_not_allowed(method, path.raw()))
}

fn databases<'a>(
    method: &Method,
    path: &ResourcePath<'a>,
    headers: &RequestHeaders<'_>,
) -> Result<Option<Operation<'a>>, ServiceError> {
    let Some(database) = last_id(path) else {
        return Ok(feed_verb(method, headers)?.map(Operation::Databases));
    };
    let verb = match *method {
        Method::GET => Some(DatabaseVerb::Read),
        Method::DELETE => Some(DatabaseVerb::Delete),
        _ => None,
    };
    Ok(verb.map(|verb| Operation::Database(database, verb)))
}

fn offers<'a>(
    method: &Method,
    path: &ResourcePath<'a>,
    headers: &RequestHeaders<'_>,
) -> Result<Option<Operation<'a>>, ServiceError> {
    let Some(offer) = last_id(path) else {
        return Ok(match feed_verb(method, headers)? {
            Some(FeedVerb::List) => Some(Operation::Offers(OffersVerb::List)),
            Some(FeedVerb::Query) => Some(Operation::Offers(OffersVerb::Query)),
            Some(FeedVerb::Create | FeedVerb::Upsert) | None => None,
        });
    };
    let verb = match *method {
        Method::GET => Some(OfferVerb::Read),
        Method::PUT => Some(OfferVerb::Replace),
        _ => None,
    };
    Ok(verb.map(|verb| Operation::Offer(offer, verb)))
}

fn unsupported<'a>(
    method: &Method,
    path: &ResourcePath<'a>,
    headers: &RequestHeaders<'_>,
) -> Result<Unsupported<'a>, ServiceError> {
    let kind = path.resource_type();
    let parent = match kind.parent() {
        Some(_) => ParentResource::Container(container_ids(path)?),
        None => ParentResource::Account,
    };
    // The service has addresses and media where these paths point, so an empty list would be wrong.
    let may_list_empty =
        !matches!(kind, ResourceType::Address | ResourceType::Media | ResourceType::Attachment);
    let verb = match *method {
        _ if !may_list_empty => UnsupportedVerb::Use,
        Method::GET | Method::DELETE if !path.is_feed() => UnsupportedVerb::Find,
        Method::GET => UnsupportedVerb::List,
        Method::POST if path.is_feed() && is_query(headers)? => UnsupportedVerb::List,
        _ => UnsupportedVerb::Use,
    };
    Ok(Unsupported { kind, parent, verb })
}

/// The operation on `docs` itself. The plan header comes first: one SDK sends it without the query header.
fn items_operation(
    method: &Method,
    headers: &RequestHeaders<'_>,
) -> Result<Option<ItemOperation<'static>>, ServiceError> {
    let operation = match *method {
        Method::GET if headers.a_im.is_some() => ItemOperation::ChangeFeed,
        Method::GET => ItemOperation::ReadFeed,
        Method::POST => {
            if RequestHeaders::flag(headers.is_query_plan_request, name::IS_QUERY_PLAN_REQUEST)? {
                ItemOperation::QueryPlan
            } else if RequestHeaders::flag(headers.is_batch_request, name::IS_BATCH_REQUEST)? {
                ItemOperation::Batch
            } else if is_query(headers)? && headers.a_im.is_some() {
                ItemOperation::ChangeFeed
            } else if is_query(headers)? {
                ItemOperation::Query
            } else if RequestHeaders::flag(headers.is_upsert, name::IS_UPSERT)? {
                ItemOperation::Upsert
            } else {
                ItemOperation::Create
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(operation))
}

fn item_operation<'a>(method: &Method, item: Id<'a>) -> Option<ItemOperation<'a>> {
    match *method {
        Method::GET => Some(ItemOperation::Read(item)),
        Method::PUT => Some(ItemOperation::Replace(item)),
        Method::PATCH => Some(ItemOperation::Patch(item)),
        Method::DELETE => Some(ItemOperation::Delete(item)),
        _ => None,
    }
}

fn feed_verb(method: &Method, headers: &RequestHeaders<'_>) -> Result<Option<FeedVerb>, ServiceError> {
    Ok(match *method {
        Method::GET => Some(FeedVerb::List),
        Method::POST if is_query(headers)? => Some(FeedVerb::Query),
        Method::POST if RequestHeaders::flag(headers.is_upsert, name::IS_UPSERT)? => Some(FeedVerb::Upsert),
        Method::POST => Some(FeedVerb::Create),
        _ => None,
    })
}

fn resource_verb(method: &Method) -> Option<ResourceVerb> {
    match *method {
        Method::GET => Some(ResourceVerb::Read),
        Method::PUT => Some(ResourceVerb::Replace),
        Method::DELETE => Some(ResourceVerb::Delete),
        _ => None,
    }
}

fn script_verb(method: &Method, kind: ResourceType) -> Option<ScriptVerb> {
    match *method {
        Method::POST if kind == ResourceType::StoredProcedure => Some(ScriptVerb::Execute),
        _ => resource_verb(method).map(ScriptVerb::Manage),
    }
}

fn conflict_verb<'a>(
    method: &Method,
    headers: &RequestHeaders<'_>,
    id: Option<Id<'a>>,
) -> Result<Option<ConflictVerb<'a>>, ServiceError> {
    if let Some(id) = id {
        return Ok(match *method {
            Method::GET => Some(ConflictVerb::Read(id)),
            Method::DELETE => Some(ConflictVerb::Delete(id)),
            _ => None,
        });
    }
    Ok(match feed_verb(method, headers)? {
        Some(FeedVerb::List) => Some(ConflictVerb::List),
        Some(FeedVerb::Query) => Some(ConflictVerb::Query),
        Some(FeedVerb::Create | FeedVerb::Upsert) | None => None,
    })
}

/// Whether a POST to a feed is a query, by its header or its content type.
fn is_query(headers: &RequestHeaders<'_>) -> Result<bool, ServiceError> {
    const QUERY_TYPE: &[u8] = b"application/query+json";
    let by_type = headers.content_type.is_some_and(|value| {
        value.as_bytes().get(..QUERY_TYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(QUERY_TYPE))
    });
    Ok(by_type || RequestHeaders::flag(headers.is_query, name::IS_QUERY)?)
}

/// The id at the end of the path; `None` for a feed.
fn last_id<'a>(path: &ResourcePath<'a>) -> Option<Id<'a>> {
    path.levels().next_back().and_then(|level| level.id.clone())
}

/// The id of a parent. Every path contains all parents.
fn id_of<'a>(path: &ResourcePath<'a>, kind: ResourceType) -> Result<Id<'a>, ServiceError> {
    let level = path.levels().find(|level| level.kind == kind);
    level.and_then(|level| level.id.clone()).ok_or_else(ServiceError::not_found)
}

fn container_ids<'a>(path: &ResourcePath<'a>) -> Result<ContainerIds<'a>, ServiceError> {
    Ok(ContainerIds {
        database: id_of(path, ResourceType::Database)?,
        container: id_of(path, ResourceType::Container)?,
    })
}

#[cfg(test)]
mod tests;
