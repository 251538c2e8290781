//! Everything a client can ask for, as data.
//!
//! `route` makes it of a request, `handlers` does it. Here is only what follows from what is asked: which
//! item it is about, and whether and what it changes.

use std::borrow::Cow;

use protocol::resource_path::ResourceType;

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
