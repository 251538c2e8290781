//! Labels of operations, for the request log and the metrics. One label per operation, so that their number
//! is bounded.

use crate::request::{
    ConflictVerb, DatabaseVerb, FeedVerb, ItemOperation, OfferVerb, OffersVerb, Operation, ResourceVerb,
    ScriptVerb,
};

impl Operation<'_> {
    /// The label of this operation, such as `read_item` or `create_container`.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Operation::ReadAccount => "read_account",
            Operation::Databases(verb) => feed(*verb, FEED_DATABASES),
            Operation::Database(_, DatabaseVerb::Read) => "read_database",
            Operation::Database(_, DatabaseVerb::Delete) => "delete_database",
            Operation::Containers(_, verb) => feed(*verb, FEED_CONTAINERS),
            Operation::Container(_, verb) => {
                resource(*verb, ["read_container", "replace_container", "delete_container"])
            }
            Operation::Items(_, operation) => item(operation),
            Operation::PartitionRanges(_) => "list_partition_key_ranges",
            Operation::Conflicts(_, ConflictVerb::List) => "list_conflicts",
            Operation::Conflicts(_, ConflictVerb::Query) => "query_conflicts",
            Operation::Conflicts(_, ConflictVerb::Read(_)) => "read_conflict",
            Operation::Conflicts(_, ConflictVerb::Delete(_)) => "delete_conflict",
            Operation::Offers(OffersVerb::List) => "list_offers",
            Operation::Offers(OffersVerb::Query) => "query_offers",
            Operation::Offer(_, OfferVerb::Read) => "read_offer",
            Operation::Offer(_, OfferVerb::Replace) => "replace_offer",
            Operation::Users(_, verb) => feed(*verb, FEED_USERS),
            Operation::User(_, verb) => resource(*verb, ["read_user", "replace_user", "delete_user"]),
            Operation::Permissions(_, verb) => feed(*verb, FEED_PERMISSIONS),
            Operation::Permission(_, _, verb) => {
                resource(*verb, ["read_permission", "replace_permission", "delete_permission"])
            }
            Operation::ClientEncryptionKeys(_, verb) => feed(*verb, FEED_CLIENT_ENCRYPTION_KEYS),
            Operation::ClientEncryptionKey(_, verb) => resource(
                *verb,
                [
                    "read_client_encryption_key",
                    "replace_client_encryption_key",
                    "delete_client_encryption_key",
                ],
            ),
            Operation::Scripts(_, _, verb) => feed(*verb, FEED_SCRIPTS),
            Operation::Script(_, _, ScriptVerb::Manage(verb)) => {
                resource(*verb, ["read_script", "replace_script", "delete_script"])
            }
            Operation::Script(_, _, ScriptVerb::Execute) => "execute_stored_procedure",
            Operation::Unsupported(_) => "unsupported",
        }
    }
}

/// Labels of a feed's operations, in the order list, create, upsert, query.
const FEED_DATABASES: [&str; 4] = ["list_databases", "create_database", "upsert_database", "query_databases"];
const FEED_CONTAINERS: [&str; 4] =
    ["list_containers", "create_container", "upsert_container", "query_containers"];
const FEED_SCRIPTS: [&str; 4] = ["list_scripts", "create_script", "upsert_script", "query_scripts"];
const FEED_CLIENT_ENCRYPTION_KEYS: [&str; 4] = [
    "list_client_encryption_keys",
    "create_client_encryption_key",
    "upsert_client_encryption_key",
    "query_client_encryption_keys",
];
const FEED_USERS: [&str; 4] = ["list_users", "create_user", "upsert_user", "query_users"];
const FEED_PERMISSIONS: [&str; 4] =
    ["list_permissions", "create_permission", "upsert_permission", "query_permissions"];

fn feed(verb: FeedVerb, [list, create, upsert, query]: [&'static str; 4]) -> &'static str {
    match verb {
        FeedVerb::List => list,
        FeedVerb::Create => create,
        FeedVerb::Upsert => upsert,
        FeedVerb::Query => query,
    }
}

fn resource(verb: ResourceVerb, [read, replace, delete]: [&'static str; 3]) -> &'static str {
    match verb {
        ResourceVerb::Read => read,
        ResourceVerb::Replace => replace,
        ResourceVerb::Delete => delete,
    }
}

fn item(operation: &ItemOperation<'_>) -> &'static str {
    match operation {
        ItemOperation::Create => "create_item",
        ItemOperation::Upsert => "upsert_item",
        ItemOperation::Read(_) => "read_item",
        ItemOperation::Replace(_) => "replace_item",
        ItemOperation::Patch(_) => "patch_item",
        ItemOperation::Delete(_) => "delete_item",
        ItemOperation::ReadFeed => "list_items",
        ItemOperation::ChangeFeed => "change_feed",
        ItemOperation::Query => "query_items",
        ItemOperation::QueryPlan => "query_plan",
        ItemOperation::Batch => "batch",
        ItemOperation::DeletePartition => "delete_partition",
    }
}
