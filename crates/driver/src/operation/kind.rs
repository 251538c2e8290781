//! What kind of request it is: which verb, and what may be done with it besides sending it once.

use azure_core::http::Method;
use protocol::resource_path::ResourceType;
use protocol::status::Status;

/// What is done to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Makes something new; 409 if it is there.
    Create,
    /// Reads one resource by its link.
    Read,
    /// Reads a page of a feed, or of its changes.
    ReadFeed,
    /// Writes over what is there; 404 if nothing is.
    Replace,
    /// Writes, whether it is there or not.
    Upsert,
    /// Removes it; 404 if it is gone.
    Delete,
    /// Changes parts of it.
    Patch,
    /// Runs several operations on one logical partition, all or none; or on one range, each by itself.
    Batch,
    /// Reads a page of a query.
    Query,
    /// Asks the gateway how to run a query.
    QueryPlan,
    /// Runs a stored procedure.
    Execute,
}

impl OperationKind {
    /// Every kind, for tables and tests.
    pub const ALL: [OperationKind; 11] = [
        OperationKind::Create,
        OperationKind::Read,
        OperationKind::ReadFeed,
        OperationKind::Replace,
        OperationKind::Upsert,
        OperationKind::Delete,
        OperationKind::Patch,
        OperationKind::Batch,
        OperationKind::Query,
        OperationKind::QueryPlan,
        OperationKind::Execute,
    ];

    /// Whether it leaves everything as it was, so that it can be sent any number of times.
    pub fn is_read_only(self) -> bool {
        match self {
            OperationKind::Read
            | OperationKind::ReadFeed
            | OperationKind::Query
            | OperationKind::QueryPlan => true,
            OperationKind::Create
            | OperationKind::Replace
            | OperationKind::Upsert
            | OperationKind::Delete
            | OperationKind::Patch
            | OperationKind::Batch
            | OperationKind::Execute => false,
        }
    }

    /// Whether sending it twice is the same as sending it once. No write is: the second of two creates is
    /// a conflict, of two deletes a 404, and the second of two upserts may overwrite what another client
    /// wrote in between. A caller who knows better says so with
    /// [`Operation::repeatable`](super::Operation::repeatable).
    pub fn is_idempotent(self) -> bool {
        self.is_read_only()
    }

    /// Whether the service would respond with `status` to an operation of this kind because an earlier attempt of the
    /// same operation was carried out. `conditional` says whether it has a precondition.
    pub fn may_have_caused(self, status: Status, conditional: bool) -> bool {
        match self {
            OperationKind::Create => status == Status::CONFLICT,
            OperationKind::Delete => {
                status == Status::NOT_FOUND || (conditional && status == Status::PRECONDITION_FAILED)
            }
            OperationKind::Replace | OperationKind::Upsert => {
                conditional && status == Status::PRECONDITION_FAILED
            }
            // Their effect is in their bodies, so carrying them out twice may fail in any of these ways.
            OperationKind::Patch | OperationKind::Batch | OperationKind::Execute => {
                matches!(
                    status,
                    Status::CONFLICT | Status::PRECONDITION_FAILED | Status::NOT_FOUND | Status::BAD_REQUEST
                )
            }
            OperationKind::Read
            | OperationKind::ReadFeed
            | OperationKind::Query
            | OperationKind::QueryPlan => false,
        }
    }

    /// The verb of the request.
    pub fn method(self) -> Method {
        match self {
            OperationKind::Read | OperationKind::ReadFeed => Method::Get,
            OperationKind::Create
            | OperationKind::Upsert
            | OperationKind::Batch
            | OperationKind::Query
            | OperationKind::QueryPlan
            | OperationKind::Execute => Method::Post,
            OperationKind::Replace => Method::Put,
            OperationKind::Patch => Method::Patch,
            OperationKind::Delete => Method::Delete,
        }
    }

    /// The verb as it is signed: lower case.
    pub fn signed_verb(self) -> &'static str {
        match self {
            OperationKind::Read | OperationKind::ReadFeed => "get",
            OperationKind::Create
            | OperationKind::Upsert
            | OperationKind::Batch
            | OperationKind::Query
            | OperationKind::QueryPlan
            | OperationKind::Execute => "post",
            OperationKind::Replace => "put",
            OperationKind::Patch => "patch",
            OperationKind::Delete => "delete",
        }
    }

    /// The word of diagnostics and metrics.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Create => "create",
            OperationKind::Read => "read",
            OperationKind::ReadFeed => "read_feed",
            OperationKind::Replace => "replace",
            OperationKind::Upsert => "upsert",
            OperationKind::Delete => "delete",
            OperationKind::Patch => "patch",
            OperationKind::Batch => "batch",
            OperationKind::Query => "query",
            OperationKind::QueryPlan => "query_plan",
            OperationKind::Execute => "execute",
        }
    }
}

/// Whether an operation reads or writes. The two have circuit breakers of their own: a partition that takes no
/// writes may still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The operation is a read.
    Read,
    /// The operation is a write.
    Write,
}

impl Access {
    /// The name in diagnostics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
        }
    }
}

/// Whether an operation is about the data or about what describes it. The two have timeouts of their own,
/// and only data lives in partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plane {
    /// Items, and what runs beside them.
    Data,
    /// Account, databases, containers, ranges, offers, users, scripts.
    Metadata,
}

impl Plane {
    /// The plane of one kind of operation on one type of resource.
    pub fn of(kind: OperationKind, resource: ResourceType) -> Plane {
        match (resource, kind) {
            (ResourceType::Item | ResourceType::Conflict | ResourceType::Attachment, _) => Plane::Data,
            (ResourceType::StoredProcedure, OperationKind::Execute) => Plane::Data,
            (ResourceType::Operation, _) => Plane::Data,
            _ => Plane::Metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changes_nothing_may_be_repeated() {
        for kind in OperationKind::ALL {
            let reads = matches!(kind.name(), "read" | "read_feed" | "query" | "query_plan");
            assert_eq!(kind.is_read_only(), reads, "{kind:?}");
            assert_eq!(kind.is_idempotent(), reads, "{kind:?}");
        }
    }

    #[test]
    fn the_signed_verb_is_the_verb_sent() {
        for kind in OperationKind::ALL {
            assert_eq!(kind.method().as_str().to_ascii_lowercase(), kind.signed_verb(), "{kind:?}");
        }
    }

    #[test]
    fn items_are_data_and_what_describes_them_is_not() {
        for (kind, resource, plane) in [
            (OperationKind::Read, ResourceType::Item, Plane::Data),
            (OperationKind::ReadFeed, ResourceType::Conflict, Plane::Data),
            (OperationKind::Execute, ResourceType::StoredProcedure, Plane::Data),
            (OperationKind::Create, ResourceType::StoredProcedure, Plane::Metadata),
            (OperationKind::Read, ResourceType::Container, Plane::Metadata),
            (OperationKind::ReadFeed, ResourceType::PartitionKeyRange, Plane::Metadata),
            (OperationKind::Read, ResourceType::Account, Plane::Metadata),
        ] {
            assert_eq!(Plane::of(kind, resource), plane, "{kind:?} {resource:?}");
        }
    }
}
