//! Which requests a rule is about.
//!
//! In: a [`RequestFilter`], which a rule has under `match`, and the [`RequestAttributes`] of one request. Out: whether they
//! match. Finding out the attributes is left to the applier. Pure.

use std::str::FromStr;

use protocol::resource_path::ResourceType;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many entries one list of a filter may have.
const LIST_MAX: usize = 64;

/// The requests a rule is about. Every field that is given has to match; fields left out match everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct RequestFilter {
    /// The kinds of operation. They are operations on items, unless `resources` says otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationKind>,
    /// The kinds of resource.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceKind>,
    /// The database, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The container, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The partition key: an array as in the request's header, or a single value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_key: Option<Value>,
    /// The physical partition, by its partition key range id. Account only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_key_range: Option<u32>,
    /// The regions, by name; spaces and capitals do not matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// The HTTP methods of the requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// The endpoints, as `host:port`. Driver only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<String>,
    /// The driver's connection shards, by the number of their HTTP client, counted from 0. Driver only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<u64>,
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum OperationKind {
    /// Reads one resource by its id; for items, a point read.
    Read,
    /// Creates a new resource.
    Create,
    /// Creates a resource or replaces it.
    Upsert,
    /// Replaces an existing resource.
    Replace,
    /// Changes parts of an item.
    Patch,
    /// Deletes an existing resource.
    Delete,
    /// Runs several operations on items in one request.
    Batch,
    /// Runs a query page by page.
    Query,
    /// Asks for the plan of a query.
    QueryPlan,
    /// Lists all resources of a feed.
    ReadFeed,
    /// Reads the change feed.
    ChangeFeed,
    /// Deletes all items of a logical partition.
    DeletePartition,
    /// Runs a stored procedure. Driver only.
    Execute,
    /// Any operation that changes items.
    Write,
    /// Any operation that is not on items: on the account, databases, containers, ranges, offers, …
    Metadata,
}

impl OperationKind {
    /// Whether the operation changes something.
    fn is_write(self) -> bool {
        use OperationKind::{Batch, Create, Delete, DeletePartition, Execute, Patch, Replace, Upsert, Write};
        matches!(self, Create | Upsert | Replace | Patch | Delete | Batch | DeletePartition | Execute | Write)
    }
}

/// The kind of resource that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ResourceKind {
    /// The document of the account itself.
    Account,
    /// Databases of the account.
    Database,
    /// Containers of a database.
    Container,
    /// Items of a container.
    Item,
    /// The physical partitions of a container.
    PartitionKeyRange,
    /// Offers: the provisioned throughput of databases and containers.
    Offer,
    /// Users of a database.
    User,
    /// Permissions of a user.
    Permission,
    /// The conflicts feed of a container.
    Conflict,
    /// Stored procedures; also matched by `other`.
    StoredProcedure,
    /// Triggers; also matched by `other`.
    Trigger,
    /// User-defined functions; also matched by `other`.
    UserDefinedFunction,
    /// Every resource that is none of the kinds before stored procedures.
    Other,
}

impl ResourceKind {
    /// Whether resources of this kind lie inside a database.
    fn is_in_a_database(self) -> bool {
        !matches!(self, ResourceKind::Account | ResourceKind::Offer)
    }

    /// Whether resources of this kind lie inside a container, or are containers.
    fn is_in_a_container(self) -> bool {
        use ResourceKind::{Account, Database, Offer, Permission, User};
        !matches!(self, Account | Database | Offer | User | Permission)
    }

    /// Whether this kind, named in a filter, includes the resource of a request.
    fn includes(self, resource: ResourceKind) -> bool {
        use ResourceKind::{Other, StoredProcedure, Trigger, UserDefinedFunction};
        self == resource
            || (self == Other && matches!(resource, StoredProcedure | Trigger | UserDefinedFunction))
    }
}

impl From<ResourceType> for ResourceKind {
    fn from(resource: ResourceType) -> ResourceKind {
        match resource {
            ResourceType::Account => ResourceKind::Account,
            ResourceType::Database => ResourceKind::Database,
            ResourceType::Container => ResourceKind::Container,
            ResourceType::Item => ResourceKind::Item,
            ResourceType::PartitionKeyRange => ResourceKind::PartitionKeyRange,
            ResourceType::Offer => ResourceKind::Offer,
            ResourceType::User => ResourceKind::User,
            ResourceType::Permission => ResourceKind::Permission,
            ResourceType::Conflict => ResourceKind::Conflict,
            ResourceType::StoredProcedure => ResourceKind::StoredProcedure,
            ResourceType::Trigger => ResourceKind::Trigger,
            ResourceType::UserDefinedFunction => ResourceKind::UserDefinedFunction,
            ResourceType::Schema
            | ResourceType::Attachment
            | ResourceType::ClientEncryptionKey
            | ResourceType::Operation
            | ResourceType::Address
            | ResourceType::Media => ResourceKind::Other,
        }
    }
}

/// What is known about one request. Attributes that are unknown match only filters that do not name them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestAttributes<'a> {
    /// The name of the region that the request goes to.
    pub region: Option<&'a str>,
    /// The HTTP method of the request.
    pub method: &'a str,
    /// The kind of operation; unknown where path and method make no sense together.
    pub operation: Option<OperationKind>,
    /// The kind of resource.
    pub resource: Option<ResourceKind>,
    /// The name of the database.
    pub database: Option<&'a str>,
    /// The name of the container.
    pub container: Option<&'a str>,
    /// The partition key, as the request's header has it.
    pub partition_key: Option<&'a Value>,
    /// The physical partition, when the request goes to exactly one.
    pub partition_key_range: Option<u32>,
    /// The endpoint, as `host:port`.
    pub endpoint: Option<&'a str>,
    /// The number of the HTTP client of the connection shard.
    pub shard: Option<u64>,
}

impl RequestFilter {
    /// Whether the filter matches a request.
    pub fn matches(&self, request: &RequestAttributes<'_>) -> bool {
        self.matches_region(request.region)
            && self.matches_operation(request)
            && (self.resources.is_empty()
                || request
                    .resource
                    .is_some_and(|resource| self.resources.iter().any(|wanted| wanted.includes(resource))))
            && is_named(self.database.as_deref(), request.database)
            && is_named(self.container.as_deref(), request.container)
            && self.partition_key_range.is_none_or(|range| request.partition_key_range == Some(range))
            && self.matches_key(request.partition_key)
            && (self.methods.is_empty()
                || self.methods.iter().any(|method| method.eq_ignore_ascii_case(request.method)))
            && (self.endpoints.is_empty()
                || request.endpoint.is_some_and(|found| {
                    self.endpoints.iter().any(|wanted| wanted.eq_ignore_ascii_case(found))
                }))
            && (self.shards.is_empty() || request.shard.is_some_and(|shard| self.shards.contains(&shard)))
    }

    /// Whether the filter is about a region, whatever the request.
    pub(crate) fn matches_region(&self, region: Option<&str>) -> bool {
        self.regions.is_empty()
            || region.is_some_and(|region| self.regions.iter().any(|wanted| is_same_region(wanted, region)))
    }

    fn matches_operation(&self, request: &RequestAttributes<'_>) -> bool {
        if self.operations.is_empty() {
            return true;
        }
        let (Some(operation), Some(resource)) = (request.operation, request.resource) else { return false };
        // "read" means a read of an item, unless other resources are named.
        let is_included = !self.resources.is_empty() || resource == ResourceKind::Item;
        self.operations.iter().any(|wanted| match wanted {
            OperationKind::Metadata => resource != ResourceKind::Item,
            OperationKind::Write => is_included && operation.is_write(),
            wanted => is_included && *wanted == operation,
        })
    }

    fn matches_key(&self, sent: Option<&Value>) -> bool {
        let Some(wanted) = &self.partition_key else { return true };
        match (wanted, sent) {
            (_, None) => false,
            (Value::Array(_), Some(sent)) => wanted == sent,
            // A single value stands for a key of one part.
            (single, Some(sent)) => {
                sent.as_array().is_some_and(|parts| parts.len() == 1 && parts[0] == *single)
            }
        }
    }

    /// Whether the filter names anything but regions.
    pub(crate) fn names_more_than_regions(&self) -> bool {
        let regions_only = RequestFilter { regions: self.regions.clone(), ..RequestFilter::default() };
        *self != regions_only
    }

    /// Whether the filter matches every request.
    pub(crate) fn is_everything(&self) -> bool {
        *self == RequestFilter::default()
    }

    /// What is wrong with the filter, if anything. Whether its regions exist, only the applier knows.
    pub(crate) fn problem(&self) -> Option<String> {
        let RequestFilter { operations, resources, regions, methods, endpoints, shards, .. } = self;
        let lengths =
            [operations.len(), resources.len(), regions.len(), methods.len(), endpoints.len(), shards.len()];
        if lengths.iter().any(|length| *length > LIST_MAX) {
            return Some(format!("a list in 'match' is too long; {LIST_MAX} entries are the most"));
        }
        let outside = |is_inside: fn(ResourceKind) -> bool| {
            !self.resources.is_empty() && !self.resources.iter().any(|resource| is_inside(*resource))
        };
        if self.operations.contains(&OperationKind::Metadata) && self.resources.contains(&ResourceKind::Item)
        {
            return Some("an operation on metadata is never about items; leave one of them out".to_owned());
        }
        if self.database.is_some() && outside(ResourceKind::is_in_a_database) {
            return Some("none of the resources named lies in a database; leave the database out".to_owned());
        }
        if self.container.is_some() && outside(ResourceKind::is_in_a_container) {
            return Some(
                "none of the resources named lies in a container; leave the container out".to_owned(),
            );
        }
        if self.partition_key.is_some() && self.partition_key_range.is_some() {
            return Some("a partition key lies in one range; name the key or the range, not both".to_owned());
        }
        for name in self.database.iter().chain(&self.container) {
            if name.is_empty() {
                return Some(
                    "a database or container has a name; leave the member out to mean any".to_owned(),
                );
            }
        }
        let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let unknown =
            self.methods.iter().find(|method| !known.iter().any(|known| known.eq_ignore_ascii_case(method)));
        if let Some(method) = unknown {
            return Some(format!("'{method}' is no HTTP method; expected one of {}", known.join(", ")));
        }
        match &self.partition_key {
            Some(Value::Array(parts)) if parts.is_empty() || parts.iter().any(Value::is_array) => {
                Some("a partition key is an array of one to three values, like [\"p1\"]".to_owned())
            }
            _ => None,
        }
    }
}

impl FromStr for OperationKind {
    type Err = String;

    fn from_str(word: &str) -> Result<OperationKind, String> {
        OperationKind::deserialize(StrDeserializer::<ValueError>::new(word))
            .map_err(|error| error.to_string())
    }
}

impl FromStr for ResourceKind {
    type Err = String;

    fn from_str(word: &str) -> Result<ResourceKind, String> {
        ResourceKind::deserialize(StrDeserializer::<ValueError>::new(word)).map_err(|error| error.to_string())
    }
}

/// Whether two names mean one region: spaces and capitals do not matter.
fn is_same_region(one: &str, other: &str) -> bool {
    normalized(one).eq(normalized(other))
}

/// A region's name without spaces, in lower case.
pub(crate) fn normalized(region: &str) -> impl Iterator<Item = char> {
    region.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase)
}

fn is_named(wanted: Option<&str>, found: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| found == Some(wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filter(json: Value) -> RequestFilter {
        serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    const READ: RequestAttributes<'static> = RequestAttributes {
        region: Some("East US"),
        method: "GET",
        operation: Some(OperationKind::Read),
        resource: Some(ResourceKind::Item),
        database: Some("shop"),
        container: Some("carts"),
        partition_key: None,
        partition_key_range: Some(2),
        endpoint: Some("one.example:443"),
        shard: Some(3),
    };

    #[test]
    fn a_filter_matches_when_every_field_that_is_given_does() {
        let key = json!(["p1"]);
        let read = RequestAttributes { partition_key: Some(&key), ..READ };
        let cases = [
            (json!({}), true),
            (json!({"operations": ["read"]}), true),
            (json!({"operations": ["create", "read"]}), true),
            (json!({"operations": ["create"]}), false),
            (json!({"operations": ["write"]}), false),
            (json!({"operations": ["metadata"]}), false),
            (json!({"resources": ["item"]}), true),
            (json!({"resources": ["container", "database"]}), false),
            (json!({"database": "shop", "container": "carts"}), true),
            (json!({"container": "orders"}), false),
            (json!({"database": "Shop"}), false),
            (json!({"partitionKey": ["p1"]}), true),
            (json!({"partitionKey": "p1"}), true),
            (json!({"partitionKey": ["p2"]}), false),
            (json!({"partitionKey": ["p1", "q"]}), false),
            (json!({"partitionKeyRange": 2}), true),
            (json!({"partitionKeyRange": 0}), false),
            (json!({"methods": ["get"]}), true),
            (json!({"methods": ["POST"]}), false),
            (json!({"operations": ["read"], "methods": ["POST"]}), false),
            (json!({"regions": ["eastus"]}), true),
            (json!({"regions": ["West US", "East US"]}), true),
            (json!({"regions": ["West US"]}), false),
            (json!({"endpoints": ["One.example:443"]}), true),
            (json!({"endpoints": ["one.example:8081"]}), false),
            (json!({"shards": [0, 3]}), true),
            (json!({"shards": [0]}), false),
            (json!({"regions": ["East US"], "container": "carts", "shards": [1]}), false),
        ];
        for (json, expected) in cases {
            assert_eq!(filter(json.clone()).matches(&read), expected, "{json}");
        }
    }

    #[test]
    fn operations_are_about_items_unless_other_resources_are_named() {
        let container = RequestAttributes { resource: Some(ResourceKind::Container), ..READ };
        let create = RequestAttributes { operation: Some(OperationKind::Create), ..container };
        let cases = [
            (json!({"operations": ["read"]}), container, false),
            (json!({"operations": ["read"], "resources": ["container"]}), container, true),
            (json!({"operations": ["metadata"]}), container, true),
            (json!({"operations": ["write"]}), create, false),
            (json!({"operations": ["write"], "resources": ["container"]}), create, true),
            (
                json!({"operations": ["write"]}),
                RequestAttributes { operation: Some(OperationKind::Batch), ..READ },
                true,
            ),
        ];
        for (json, request, expected) in cases {
            assert_eq!(filter(json.clone()).matches(&request), expected, "{json}");
        }
    }

    #[test]
    fn unknown_attributes_match_only_filters_that_do_not_name_them() {
        let unknown = RequestAttributes::default();
        assert!(RequestFilter::default().matches(&unknown));
        for json in [
            json!({"operations": ["read"]}),
            json!({"resources": ["item"]}),
            json!({"database": "d"}),
            json!({"partitionKey": "p"}),
            json!({"partitionKeyRange": 0}),
            json!({"regions": ["East US"]}),
            json!({"methods": ["GET"]}),
            json!({"endpoints": ["one.example:443"]}),
            json!({"shards": [0]}),
        ] {
            assert!(!filter(json.clone()).matches(&unknown), "{json}");
        }
    }

    #[test]
    fn other_resources_are_all_that_have_no_kind_of_their_own_and_scripts() {
        let other = filter(json!({"resources": ["other"]}));
        let scripts = filter(json!({"resources": ["storedProcedure"]}));
        for (resource, is_other, is_procedure) in [
            (ResourceKind::Other, true, false),
            (ResourceKind::StoredProcedure, true, true),
            (ResourceKind::Trigger, true, false),
            (ResourceKind::Item, false, false),
        ] {
            let request = RequestAttributes { resource: Some(resource), ..READ };
            assert_eq!((other.matches(&request), scripts.matches(&request)), (is_other, is_procedure));
        }
    }

    #[test]
    fn contradictions_say_what_to_leave_out() {
        let cases = [
            (json!({"operations": ["metadata"], "resources": ["item"]}), "metadata"),
            (json!({"resources": ["account"], "database": "d"}), "database"),
            (json!({"resources": ["user"], "container": "c"}), "container"),
            (json!({"partitionKey": "a", "partitionKeyRange": 0}), "not both"),
            (json!({"database": ""}), "name"),
            (json!({"methods": ["FETCH"]}), "FETCH"),
            (json!({"partitionKey": []}), "partition key"),
            (json!({"partitionKey": [["a"]]}), "partition key"),
        ];
        for (json, part) in cases {
            let problem = filter(json.clone()).problem().unwrap_or_else(|| panic!("{json} is possible"));
            assert!(problem.contains(part), "{problem}");
        }
    }
}
