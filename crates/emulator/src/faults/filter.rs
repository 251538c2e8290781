//! Which requests a rule is about. Pure.
//!
//! In: what a rule says under `match`, and the [`Facts`] of one request. Out: whether they fit. How
//! facts are found out is the gateway's affair.

use std::str::FromStr;

use serde::de::value::{Error as ValueError, StrDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use engine::regions::RegionId;

/// What a rule says under `match`. What it does not mention, it does not care about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Filter {
    /// What is asked. About items, unless `resources` says otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationKind>,
    /// What it is asked about.
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
    /// The physical partition, by its range id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition_key_range: Option<u32>,
    /// The regions, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// The HTTP methods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum OperationKind {
    /// One resource by its id: a point read.
    Read,
    /// A new one.
    Create,
    /// A new one, or a new version of it.
    Upsert,
    /// A new version.
    Replace,
    /// A change to parts.
    Patch,
    /// Its removal.
    Delete,
    /// Several operations on items at once.
    Batch,
    /// A query.
    Query,
    /// The plan of a query.
    QueryPlan,
    /// A list of all.
    ReadFeed,
    /// What changed.
    ChangeFeed,
    /// The removal of a whole logical partition.
    DeletePartition,
    /// Any of those that change items.
    Write,
    /// Anything that is not about items: the account, databases, containers, ranges, offers, …
    Metadata,
}

impl OperationKind {
    /// Whether it changes something.
    fn is_write(self) -> bool {
        use OperationKind::{Batch, Create, Delete, DeletePartition, Patch, Replace, Upsert, Write};
        matches!(self, Create | Upsert | Replace | Patch | Delete | Batch | DeletePartition | Write)
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ResourceKind {
    /// The account document.
    Account,
    /// Databases.
    Database,
    /// Containers.
    Container,
    /// Items.
    Item,
    /// The physical partitions of a container.
    PartitionKeyRange,
    /// Throughput.
    Offer,
    /// Users.
    User,
    /// Permissions.
    Permission,
    /// The conflicts feed.
    Conflict,
    /// Anything else.
    Other,
}

impl ResourceKind {
    /// Whether it lies inside a database.
    fn is_in_a_database(self) -> bool {
        !matches!(self, ResourceKind::Account | ResourceKind::Offer)
    }

    /// Whether it lies inside a container, or is one.
    fn is_in_a_container(self) -> bool {
        use ResourceKind::{Conflict, Container, Item, Other, PartitionKeyRange};
        matches!(self, Container | Item | PartitionKeyRange | Conflict | Other)
    }
}

/// What is known about one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// The region that was asked.
    pub(crate) region: RegionId,
    /// The HTTP method.
    pub(crate) method: &'a str,
    /// What is asked; nobody knows when the path or the verb make no sense.
    pub(crate) operation: Option<OperationKind>,
    /// What it is asked about.
    pub(crate) resource: Option<ResourceKind>,
    /// The database's name.
    pub(crate) database: Option<&'a str>,
    /// The container's name.
    pub(crate) container: Option<&'a str>,
    /// The partition key, as the header has it.
    pub(crate) partition_key: Option<&'a Value>,
    /// The physical partition, when there is exactly one.
    pub(crate) partition_key_range: Option<u32>,
}

impl Filter {
    /// Whether a request is one of those meant. `regions` are the regions named.
    pub(crate) fn accepts(&self, facts: &Facts<'_>, regions: &[RegionId]) -> bool {
        (regions.is_empty() || regions.contains(&facts.region))
            && self.accepts_operation(facts)
            && (self.resources.is_empty()
                || facts.resource.is_some_and(|resource| self.resources.contains(&resource)))
            && is_named(self.database.as_deref(), facts.database)
            && is_named(self.container.as_deref(), facts.container)
            && self.partition_key_range.is_none_or(|range| facts.partition_key_range == Some(range))
            && self.accepts_key(facts.partition_key)
            && (self.methods.is_empty()
                || self.methods.iter().any(|method| method.eq_ignore_ascii_case(facts.method)))
    }

    fn accepts_operation(&self, facts: &Facts<'_>) -> bool {
        if self.operations.is_empty() {
            return true;
        }
        let (Some(operation), Some(resource)) = (facts.operation, facts.resource) else { return false };
        // "read" means a read of an item, unless other resources are named.
        let is_meant = !self.resources.is_empty() || resource == ResourceKind::Item;
        self.operations.iter().any(|wanted| match wanted {
            OperationKind::Metadata => resource != ResourceKind::Item,
            OperationKind::Write => is_meant && operation.is_write(),
            wanted => is_meant && *wanted == operation,
        })
    }

    fn accepts_key(&self, sent: Option<&Value>) -> bool {
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

    /// Whether it looks at anything but the region.
    pub(crate) fn looks_at_requests(&self) -> bool {
        let region_only = Filter { regions: self.regions.clone(), ..Filter::default() };
        *self != region_only
    }

    /// What makes this impossible, if anything. Regions are the caller's to check.
    pub(crate) fn problem(&self) -> Option<String> {
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

fn is_named(wanted: Option<&str>, found: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| found == Some(wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filter(json: Value) -> Filter {
        serde_json::from_value(json.clone()).unwrap_or_else(|error| panic!("{json}: {error}"))
    }

    const READ: Facts<'static> = Facts {
        region: RegionId(1),
        method: "GET",
        operation: Some(OperationKind::Read),
        resource: Some(ResourceKind::Item),
        database: Some("shop"),
        container: Some("carts"),
        partition_key: None,
        partition_key_range: Some(2),
    };

    #[test]
    fn a_request_is_meant_when_everything_said_about_it_holds() {
        let key = json!(["p1"]);
        let read = Facts { partition_key: Some(&key), ..READ };
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
        ];
        for (json, expected) in cases {
            assert_eq!(filter(json.clone()).accepts(&read, &[]), expected, "{json}");
        }
        let any = Filter::default();
        let [first, second, third] = [0, 1, 2].map(RegionId);
        assert!(any.accepts(&read, &[first, second]) && !any.accepts(&read, &[first, third]));
    }

    #[test]
    fn operations_are_about_items_unless_other_resources_are_named() {
        let container = Facts { resource: Some(ResourceKind::Container), ..READ };
        let create = Facts { operation: Some(OperationKind::Create), ..container };
        let cases = [
            (json!({"operations": ["read"]}), container, false),
            (json!({"operations": ["read"], "resources": ["container"]}), container, true),
            (json!({"operations": ["metadata"]}), container, true),
            (json!({"operations": ["write"]}), create, false),
            (json!({"operations": ["write"], "resources": ["container"]}), create, true),
            (json!({"operations": ["write"]}), Facts { operation: Some(OperationKind::Batch), ..READ }, true),
        ];
        for (json, facts, expected) in cases {
            assert_eq!(filter(json.clone()).accepts(&facts, &[]), expected, "{json}");
        }
    }

    #[test]
    fn a_request_nobody_understands_meets_only_filters_that_do_not_ask() {
        let unknown = Facts { operation: None, resource: None, database: None, container: None, ..READ };
        assert!(Filter::default().accepts(&unknown, &[]));
        for json in
            [json!({"operations": ["read"]}), json!({"resources": ["item"]}), json!({"database": "d"})]
        {
            assert!(!filter(json.clone()).accepts(&unknown, &[]), "{json}");
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
