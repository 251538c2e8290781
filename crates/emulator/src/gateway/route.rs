//! What is asked: method + path + headers → [`Operation`].
//!
//! Pure. Names come out percent-decoded; whether they exist, and whether one is really a `_rid`, is
//! for the catalog to say. A path nobody knows is 404, a known path with the wrong verb is 405.

use std::borrow::Cow;

use http::Method;
use protocol::headers as name;
use protocol::resource_path::{ResourcePath, ResourceType};

use super::error::ServiceError;
use super::headers::RequestHeaders;

/// An id out of a path: a name, or the `_rid` in its place.
pub(crate) type Id<'a> = Cow<'a, str>;

/// Everything a client can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    /// `GET /`.
    ReadAccount,
    /// `/dbs`.
    Databases(FeedVerb),
    /// `/dbs/{database}`.
    Database(Id<'a>, DatabaseVerb),
    /// `/dbs/{database}/colls`.
    Containers(Id<'a>, FeedVerb),
    /// `/dbs/{database}/colls/{container}`.
    Container(ContainerIds<'a>, ResourceVerb),
    /// `/dbs/{database}/colls/{container}/docs` and below, and what acts on items otherwise.
    Items(ContainerIds<'a>, ItemOperation<'a>),
    /// `GET /dbs/{database}/colls/{container}/pkranges`.
    PartitionRanges(ContainerIds<'a>),
    /// `/dbs/{database}/colls/{container}/conflicts`.
    Conflicts(ContainerIds<'a>, ConflictVerb<'a>),
    /// `/offers`.
    Offers(OffersVerb),
    /// `/offers/{id}`.
    Offer(Id<'a>, OfferVerb),
    /// `/dbs/{database}/users`.
    Users(Id<'a>, FeedVerb),
    /// `/dbs/{database}/users/{user}`.
    User(UserIds<'a>, ResourceVerb),
    /// `/dbs/{database}/users/{user}/permissions`.
    Permissions(UserIds<'a>, FeedVerb),
    /// `/dbs/{database}/users/{user}/permissions/{permission}`.
    Permission(UserIds<'a>, Id<'a>, ResourceVerb),
    /// Stored procedures, triggers, functions, encryption keys and the like: never more than an
    /// empty feed.
    Unsupported(Unsupported<'a>),
}

/// What an operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Items: taken by every region of an account that writes in several.
    Items,
    /// Databases, containers and the like: taken by the hub alone.
    Resources,
}

impl Operation<'_> {
    /// What it changes, if anything.
    pub(crate) fn writes(&self) -> Option<Written> {
        let resources = |changes: bool| changes.then_some(Written::Resources);
        match self {
            Operation::Items(_, operation) => operation.changes_items().then_some(Written::Items),
            Operation::Databases(verb)
            | Operation::Containers(_, verb)
            | Operation::Users(_, verb)
            | Operation::Permissions(_, verb) => {
                resources(matches!(verb, FeedVerb::Create | FeedVerb::Upsert))
            }
            Operation::Database(_, verb) => resources(*verb != DatabaseVerb::Read),
            Operation::Container(_, verb) | Operation::User(_, verb) | Operation::Permission(_, _, verb) => {
                resources(*verb != ResourceVerb::Read)
            }
            Operation::Offer(_, verb) => resources(*verb != OfferVerb::Read),
            Operation::Conflicts(_, verb) => {
                matches!(verb, ConflictVerb::Delete(_)).then_some(Written::Items)
            }
            Operation::ReadAccount
            | Operation::PartitionRanges(_)
            | Operation::Offers(_)
            | Operation::Unsupported(_) => None,
        }
    }
}

impl ItemOperation<'_> {
    fn changes_items(&self) -> bool {
        match self {
            ItemOperation::Create
            | ItemOperation::Upsert
            | ItemOperation::Replace(_)
            | ItemOperation::Patch(_)
            | ItemOperation::Delete(_)
            | ItemOperation::Batch
            | ItemOperation::DeletePartition => true,
            ItemOperation::Read(_)
            | ItemOperation::ReadFeed
            | ItemOperation::ChangeFeed
            | ItemOperation::Query
            | ItemOperation::QueryPlan => false,
        }
    }
}

/// A database and a container in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ContainerIds<'a> {
    /// The database.
    pub(crate) database: Id<'a>,
    /// The container.
    pub(crate) container: Id<'a>,
}

/// A database and a user of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserIds<'a> {
    /// The database.
    pub(crate) database: Id<'a>,
    /// The user.
    pub(crate) user: Id<'a>,
}

/// What one may do to a feed of named resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedVerb {
    /// GET.
    List,
    /// POST.
    Create,
    /// POST with the upsert header.
    Upsert,
    /// POST with a query.
    Query,
}

/// What one may do to a named resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceVerb {
    /// GET.
    Read,
    /// PUT.
    Replace,
    /// DELETE.
    Delete,
}

/// What one may do to a database: it has nothing to replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseVerb {
    /// GET.
    Read,
    /// DELETE.
    Delete,
}

/// What one may do to the offers: they come and go with what they pay for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffersVerb {
    /// GET.
    List,
    /// POST with a query.
    Query,
}

/// What one may do to an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferVerb {
    /// GET.
    Read,
    /// PUT.
    Replace,
}

/// What one may do about conflicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConflictVerb<'a> {
    /// GET of all of them.
    List,
    /// A query over all of them.
    Query,
    /// GET of one.
    Read(Id<'a>),
    /// DELETE of one.
    Delete(Id<'a>),
}

/// What one may do to items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemOperation<'a> {
    /// `POST docs`.
    Create,
    /// `POST docs` with the upsert header.
    Upsert,
    /// `GET docs/{id}`.
    Read(Id<'a>),
    /// `PUT docs/{id}`.
    Replace(Id<'a>),
    /// `PATCH docs/{id}`.
    Patch(Id<'a>),
    /// `DELETE docs/{id}`.
    Delete(Id<'a>),
    /// `GET docs`.
    ReadFeed,
    /// `GET docs` with `a-im`.
    ChangeFeed,
    /// `POST docs` with a query.
    Query,
    /// `POST docs` with the plan header.
    QueryPlan,
    /// `POST docs` with the batch header; atomic or bulk.
    Batch,
    /// `POST operations/partitionkeydelete`.
    DeletePartition,
}

impl ItemOperation<'_> {
    /// The item that is addressed, if it is a single one.
    pub(crate) fn item_id(&self) -> Option<&str> {
        match self {
            ItemOperation::Read(id)
            | ItemOperation::Replace(id)
            | ItemOperation::Patch(id)
            | ItemOperation::Delete(id) => Some(id),
            ItemOperation::Create
            | ItemOperation::Upsert
            | ItemOperation::ReadFeed
            | ItemOperation::ChangeFeed
            | ItemOperation::Query
            | ItemOperation::QueryPlan
            | ItemOperation::Batch
            | ItemOperation::DeletePartition => None,
        }
    }

    /// Whether the operation changes nothing. A batch counts as a write, whatever is in it.
    pub(crate) fn is_read(&self) -> bool {
        !self.changes_items()
    }
}

/// A request for something this account does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported<'a> {
    /// What it is.
    pub(crate) kind: ResourceType,
    /// Where it would be.
    pub(crate) parent: Parent<'a>,
    /// What was tried.
    pub(crate) verb: UnsupportedVerb,
}

/// What was tried on a feature that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsupportedVerb {
    /// GET or a query: nothing was ever created, so the list is empty.
    List,
    /// GET or DELETE of one: it does not exist.
    Find,
    /// Anything that would create, change or run one.
    Use,
}

/// Where a feature that is not there would hang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parent<'a> {
    /// Below the account.
    Account,
    /// Below a database.
    Database(Id<'a>),
    /// Below a container.
    Container(ContainerIds<'a>),
}

/// Understands a request. Grows with the length of the path.
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
        ResourceType::StoredProcedure
        | ResourceType::Trigger
        | ResourceType::UserDefinedFunction
        | ResourceType::ClientEncryptionKey
        | ResourceType::Attachment
        | ResourceType::Schema
        | ResourceType::Address
        | ResourceType::Media => Some(Operation::Unsupported(unsupported(method, path, headers)?)),
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
        Some(ResourceType::Database) => Parent::Database(id_of(path, ResourceType::Database)?),
        Some(_) => Parent::Container(container_ids(path)?),
        None => Parent::Account,
    };
    // An empty list of addresses or media would be a lie: something is where they point in the service.
    let is_list_honest =
        !matches!(kind, ResourceType::Address | ResourceType::Media | ResourceType::Attachment);
    let verb = match *method {
        _ if !is_list_honest => UnsupportedVerb::Use,
        Method::GET | Method::DELETE if !path.is_feed() => UnsupportedVerb::Find,
        Method::GET => UnsupportedVerb::List,
        Method::POST if path.is_feed() && is_query(headers)? => UnsupportedVerb::List,
        _ => UnsupportedVerb::Use,
    };
    Ok(Unsupported { kind, parent, verb })
}

/// `docs` itself. The plan header is looked at first: one SDK sends plans without the query header.
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

/// A POST to a feed is a query when a header or the content type says so.
fn is_query(headers: &RequestHeaders<'_>) -> Result<bool, ServiceError> {
    const QUERY_TYPE: &[u8] = b"application/query+json";
    let by_type = headers.content_type.is_some_and(|value| {
        value.as_bytes().get(..QUERY_TYPE.len()).is_some_and(|start| start.eq_ignore_ascii_case(QUERY_TYPE))
    });
    Ok(by_type || RequestHeaders::flag(headers.is_query, name::IS_QUERY)?)
}

/// The id at the end of the path; a feed has none.
fn last_id<'a>(path: &ResourcePath<'a>) -> Option<Id<'a>> {
    path.levels().next_back().and_then(|level| level.id.clone())
}

/// The id of a parent. Paths spell out every parent, so it is always there.
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
