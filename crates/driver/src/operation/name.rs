//! The names of operations in diagnostics, spans and metrics.

use protocol::headers;
use protocol::resource_path::ResourceType;

use super::{Operation, OperationKind, Scope};

/// The names of the operations on one type of resource, by kind.
macro_rules! by_kind {
    ($kind:expr, $one:literal, $many:literal) => {
        match $kind {
            OperationKind::Create => concat!("create_", $one),
            OperationKind::Read => concat!("read_", $one),
            OperationKind::ReadFeed => concat!("read_all_", $many),
            OperationKind::Replace => concat!("replace_", $one),
            OperationKind::Upsert => concat!("upsert_", $one),
            OperationKind::Delete => concat!("delete_", $one),
            OperationKind::Patch => concat!("patch_", $one),
            OperationKind::Query => concat!("query_", $many),
            OperationKind::QueryPlan => "read_query_plan",
            OperationKind::Batch => "execute_batch",
            OperationKind::Execute => concat!("execute_", $one),
        }
    };
}

impl Operation {
    /// The name of the operation, as OpenTelemetry's conventions for Cosmos DB list it: `read_item`,
    /// `query_items`, `execute_batch`. What they do not list is named alike: `read_all_partition_key_ranges`.
    pub fn name(&self) -> &'static str {
        let kind = self.kind;
        match self.target.resource() {
            ResourceType::Item => self.name_on_items(),
            ResourceType::Account => by_kind!(kind, "account", "accounts"),
            ResourceType::Database => by_kind!(kind, "database", "databases"),
            ResourceType::Container => by_kind!(kind, "container", "containers"),
            ResourceType::PartitionKeyRange => by_kind!(kind, "partition_key_range", "partition_key_ranges"),
            ResourceType::StoredProcedure => by_kind!(kind, "stored_procedure", "stored_procedures"),
            ResourceType::Trigger => by_kind!(kind, "trigger", "triggers"),
            ResourceType::UserDefinedFunction => {
                by_kind!(kind, "user_defined_function", "user_defined_functions")
            }
            ResourceType::Conflict => by_kind!(kind, "conflict", "conflicts"),
            ResourceType::Schema => by_kind!(kind, "schema", "schemas"),
            ResourceType::Attachment => by_kind!(kind, "attachment", "attachments"),
            ResourceType::User => by_kind!(kind, "user", "users"),
            ResourceType::Permission => by_kind!(kind, "permission", "permissions"),
            ResourceType::ClientEncryptionKey => {
                by_kind!(kind, "client_encryption_key", "client_encryption_keys")
            }
            ResourceType::Offer => by_kind!(kind, "offer", "offers"),
            // The only such operation that there is.
            ResourceType::Operation => "delete_all_items_by_partition_key",
            ResourceType::Address => by_kind!(kind, "address", "addresses"),
            ResourceType::Media => by_kind!(kind, "media", "media"),
        }
    }

    fn name_on_items(&self) -> &'static str {
        match (self.kind, &self.scope) {
            (OperationKind::ReadFeed, _) if self.header(headers::A_IM).is_some() => "query_change_feed",
            (OperationKind::ReadFeed, Scope::Key(_)) => "read_all_items_of_logical_partition",
            (OperationKind::Batch, _) if self.header(headers::BATCH_ATOMIC) == Some("false") => {
                "execute_bulk"
            }
            (kind, _) => by_kind!(kind, "item", "items"),
        }
    }

    fn header(&self, wanted: &str) -> Option<&str> {
        self.headers.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use protocol::partition::PartitionKey;

    use super::*;
    use crate::operation::{ContainerName, Target};

    #[test]
    fn operations_are_named_as_the_conventions_list_them() {
        let name = ContainerName::new("shop", "orders");
        let key = || PartitionKey::single("ada");
        let on_items = |kind| Operation::new(kind, Target::items(&name));
        let database = Target::database("shop");
        let procedure = Target::container(&name).entry(ResourceType::StoredProcedure, "p");
        for (operation, expected) in [
            (Operation::read_item(&name, key(), "1"), "read_item"),
            (Operation::create_item(&name, key(), "{}"), "create_item"),
            (Operation::upsert_item(&name, key(), "{}"), "upsert_item"),
            (Operation::replace_item(&name, key(), "1", "{}"), "replace_item"),
            (Operation::delete_item(&name, key(), "1"), "delete_item"),
            (Operation::new(OperationKind::Patch, Target::item(&name, "1")), "patch_item"),
            (on_items(OperationKind::Query), "query_items"),
            (on_items(OperationKind::ReadFeed), "read_all_items"),
            (
                on_items(OperationKind::ReadFeed).with_scope(Scope::Key(key())),
                "read_all_items_of_logical_partition",
            ),
            (
                on_items(OperationKind::ReadFeed).with_header(headers::A_IM, headers::A_IM_INCREMENTAL),
                "query_change_feed",
            ),
            (on_items(OperationKind::Batch).with_header(headers::BATCH_ATOMIC, "true"), "execute_batch"),
            (on_items(OperationKind::Batch).with_header(headers::BATCH_ATOMIC, "false"), "execute_bulk"),
            (Operation::new(OperationKind::Read, database.clone()), "read_database"),
            (Operation::new(OperationKind::Create, Target::databases()), "create_database"),
            (Operation::new(OperationKind::ReadFeed, Target::containers("shop")), "read_all_containers"),
            (Operation::new(OperationKind::Read, Target::container(&name)), "read_container"),
            (Operation::new(OperationKind::Execute, procedure), "execute_stored_procedure"),
            (
                Operation::new(OperationKind::ReadFeed, Target::partition_key_ranges(&name)),
                "read_all_partition_key_ranges",
            ),
        ] {
            assert_eq!(operation.name(), expected);
        }
    }
}
