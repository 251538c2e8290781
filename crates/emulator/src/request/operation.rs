//! The operations of the REST API, as data.
//!
//! `route` makes an [`Operation`] from a request, `handlers` carries it out. Here is only what follows from
//! the operation itself: which item it addresses, and whether and what it changes.

use std::borrow::Cow;

use protocol::resource_path::ResourceType;

/// An id in a path: a name, or a `_rid` in its place.
pub(crate) type Id<'a> = Cow<'a, str>;

/// An operation on the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    /// Reading the account: `GET /`.
    ReadAccount,
    /// An operation on the feed of databases, `/dbs`.
    Databases(FeedVerb),
    /// An operation on one database, `/dbs/{database}`.
    Database(Id<'a>, DatabaseVerb),
    /// An operation on a database's containers, `/dbs/{database}/colls`.
    Containers(Id<'a>, FeedVerb),
    /// An operation on one container, `/dbs/{database}/colls/{container}`.
    Container(ContainerIds<'a>, ResourceVerb),
    /// `/dbs/{database}/colls/{container}/docs` and below, and other operations on items.
    Items(ContainerIds<'a>, ItemOperation<'a>),
    /// Listing the partition key ranges: `GET /dbs/{database}/colls/{container}/pkranges`.
    PartitionRanges(ContainerIds<'a>),
    /// An operation on conflicts, `/dbs/{database}/colls/{container}/conflicts`.
    Conflicts(ContainerIds<'a>, ConflictVerb<'a>),
    /// An operation on the feed of offers, `/offers`.
    Offers(OffersVerb),
    /// An operation on one offer, `/offers/{id}`.
    Offer(Id<'a>, OfferVerb),
    /// An operation on a database's users, `/dbs/{database}/users`.
    Users(Id<'a>, FeedVerb),
    /// An operation on one user, `/dbs/{database}/users/{user}`.
    User(UserIds<'a>, ResourceVerb),
    /// An operation on a user's permissions, `/dbs/{database}/users/{user}/permissions`.
    Permissions(UserIds<'a>, FeedVerb),
    /// An operation on one permission, `/dbs/{database}/users/{user}/permissions/{permission}`.
    Permission(UserIds<'a>, Id<'a>, ResourceVerb),
    /// An operation on a database's client encryption keys, `/dbs/{database}/clientencryptionkeys`.
    ClientEncryptionKeys(Id<'a>, FeedVerb),
    /// An operation on one client encryption key, `/dbs/{database}/clientencryptionkeys/{key}`.
    ClientEncryptionKey(ClientEncryptionKeyIds<'a>, ResourceVerb),
    /// An operation on a container's scripts of one kind, `…/colls/{container}/sprocs`, `triggers` or `udfs`.
    Scripts(ContainerIds<'a>, ResourceType, FeedVerb),
    /// An operation on one script, such as `…/colls/{container}/sprocs/{id}`.
    Script(ContainerIds<'a>, (ResourceType, Id<'a>), ScriptVerb),
    /// Attachments, schemas and the like: never more than an empty feed.
    Unsupported(Unsupported<'a>),
}

/// What kind of resource an operation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteTarget {
    /// Items: accepted by every region of a multi-write account.
    Items,
    /// Databases, containers and the like: accepted by the hub region only.
    Resources,
}

impl Operation<'_> {
    /// What the operation writes, if anything.
    pub(crate) fn write_target(&self) -> Option<WriteTarget> {
        let resources = |changes: bool| changes.then_some(WriteTarget::Resources);
        match self {
            Operation::Items(_, operation) => operation.changes_items().then_some(WriteTarget::Items),
            Operation::Databases(verb)
            | Operation::Containers(_, verb)
            | Operation::Users(_, verb)
            | Operation::ClientEncryptionKeys(_, verb)
            | Operation::Scripts(_, _, verb)
            | Operation::Permissions(_, verb) => {
                resources(matches!(verb, FeedVerb::Create | FeedVerb::Upsert))
            }
            Operation::Database(_, verb) => resources(*verb != DatabaseVerb::Read),
            Operation::Container(_, verb)
            | Operation::User(_, verb)
            | Operation::ClientEncryptionKey(_, verb)
            | Operation::Permission(_, _, verb) => resources(*verb != ResourceVerb::Read),
            Operation::Script(_, _, verb) => resources(*verb != ScriptVerb::Manage(ResourceVerb::Read)),
            Operation::Offer(_, verb) => resources(*verb != OfferVerb::Read),
            Operation::Conflicts(_, verb) => {
                matches!(verb, ConflictVerb::Delete(_)).then_some(WriteTarget::Items)
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
    /// The id of the database.
    pub(crate) database: Id<'a>,
    /// The id of the container.
    pub(crate) container: Id<'a>,
}

/// A database and a user of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserIds<'a> {
    /// The id of the database.
    pub(crate) database: Id<'a>,
    /// The id of the user.
    pub(crate) user: Id<'a>,
}

/// A database and a client encryption key of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientEncryptionKeyIds<'a> {
    /// The id of the database.
    pub(crate) database: Id<'a>,
    /// The id of the key.
    pub(crate) key: Id<'a>,
}

/// The operations on a feed of resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FeedVerb {
    /// `GET` of the feed.
    List,
    /// `POST` to the feed.
    Create,
    /// POST with the upsert header.
    Upsert,
    /// POST with a query.
    Query,
}

/// The operations on a single resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResourceVerb {
    /// `GET` of the resource.
    Read,
    /// `PUT` of the resource.
    Replace,
    /// `DELETE` of the resource.
    Delete,
}

/// The operations on a stored procedure, trigger or user-defined function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptVerb {
    /// Reading, replacing or deleting the script.
    Manage(ResourceVerb),
    /// Running a stored procedure: `POST` to it.
    Execute,
}

/// The operations on a database, which cannot be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseVerb {
    /// `GET` of the resource.
    Read,
    /// `DELETE` of the resource.
    Delete,
}

/// The operations on the feed of offers, which are created and deleted with their resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffersVerb {
    /// `GET` of the feed.
    List,
    /// POST with a query.
    Query,
}

/// The operations on an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferVerb {
    /// `GET` of the resource.
    Read,
    /// `PUT` of the resource.
    Replace,
}

/// The operations on conflicts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConflictVerb<'a> {
    /// `GET` of the feed of conflicts.
    List,
    /// `POST` with a query over the conflicts.
    Query,
    /// `GET` of one conflict.
    Read(Id<'a>),
    /// `DELETE` of one conflict.
    Delete(Id<'a>),
}

/// The operations on items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemOperation<'a> {
    /// Creating an item: `POST docs`.
    Create,
    /// `POST docs` with the upsert header.
    Upsert,
    /// The point read: `GET docs/{id}`.
    Read(Id<'a>),
    /// Replacing an item: `PUT docs/{id}`.
    Replace(Id<'a>),
    /// Patching an item: `PATCH docs/{id}`.
    Patch(Id<'a>),
    /// Deleting an item: `DELETE docs/{id}`.
    Delete(Id<'a>),
    /// Reading all items: `GET docs`.
    ReadFeed,
    /// `GET docs` with `a-im`, or `POST docs` with `a-im` and a query that filters it.
    ChangeFeed,
    /// `POST docs` with a query.
    Query,
    /// `POST docs` with the plan header.
    QueryPlan,
    /// `POST docs` with the batch header; atomic or bulk.
    Batch,
    /// Deleting a logical partition: `POST operations/partitionkeydelete`.
    DeletePartition,
}

impl ItemOperation<'_> {
    /// The id of the item, if the operation addresses a single one.
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

/// A request for a feature that the emulator does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported<'a> {
    /// The resource type of the feature.
    pub(crate) kind: ResourceType,
    /// The parent that the resource would have.
    pub(crate) parent: ParentResource<'a>,
    /// The kind of operation that was requested.
    pub(crate) verb: UnsupportedVerb,
}

/// The kind of operation on an unsupported feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnsupportedVerb {
    /// GET or a query: nothing was ever created, so the list is empty.
    List,
    /// GET or DELETE of one: it does not exist.
    Find,
    /// Anything that would create, change or run one.
    Use,
}

/// The parent of an unsupported resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParentResource<'a> {
    /// The account is the parent.
    Account,
    /// A container is the parent.
    Container(ContainerIds<'a>),
}
