//! Which requests read a list of items: grouped by physical partition, one point read or bounded queries for each. Pure.

use std::collections::HashMap;

use bytes::Bytes;
use driver::{Error, ErrorKind, PartitionMap};
use protocol::container::{KeyCompleteness, PartitionKeyDefinition, PartitionKeyPath};
use protocol::partition::{EpkRange, PartitionKey, PartitionKeyComponent, effective_key};
use protocol::partition_range::RangeId;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Result;
use crate::serialize::to_body;

/// The most items that one query asks for.
pub(super) const ITEMS_PER_QUERY_MAX: usize = 1000;
/// The most bytes of ids that one query asks for; the service accepts query texts of 512 KB.
const ID_BYTES_PER_QUERY_MAX: usize = 256 * 1024;

/// The partition key and the id of an item, which together identify it in its container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ItemIdentity {
    /// The partition key of the item, with all its components.
    pub key: PartitionKey,
    /// The id of the item.
    pub id: String,
}

impl ItemIdentity {
    /// The identity of the item with this partition key and id.
    pub fn new(key: impl Into<PartitionKey>, id: impl Into<String>) -> ItemIdentity {
        ItemIdentity { key: key.into(), id: id.into() }
    }
}

impl<K: Into<PartitionKey>, I: Into<String>> From<(K, I)> for ItemIdentity {
    fn from((key, id): (K, I)) -> ItemIdentity {
        ItemIdentity::new(key, id)
    }
}

/// One read of a plan. Items are named by their index in the list that was planned.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PartitionRead {
    /// Reads one item, the only one of its partition.
    Point(usize),
    /// Asks one partition for several items.
    Query {
        /// The EPK range of the partition.
        range: EpkRange,
        /// The items, [`ITEMS_PER_QUERY_MAX`] at most.
        items: Vec<usize>,
    },
}

/// Checks that the keys have the components of the container's. An error names the first item whose key has not.
pub(super) fn check_keys(items: &[ItemIdentity], definition: &PartitionKeyDefinition) -> Result<()> {
    let is_complete = |item: &&ItemIdentity| definition.completeness(&item.key) == KeyCompleteness::Complete;
    match items.iter().find(|item| !is_complete(item)) {
        Some(item) => Err(incomplete_key(item, definition)),
        None => Ok(()),
    }
}

/// Divides the items, which are all different and have complete keys, over the partitions of a container.
pub(super) fn plan(
    items: &[ItemIdentity],
    definition: &PartitionKeyDefinition,
    map: &PartitionMap,
) -> Vec<PartitionRead> {
    let mut by_partition: HashMap<RangeId, (EpkRange, Vec<usize>)> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        let owner = map.owner(&effective_key(definition, &item.key));
        let (_, indexes) = by_partition.entry(owner.id).or_insert_with(|| (owner.range.clone(), Vec::new()));
        indexes.push(index);
    }
    let mut partitions: Vec<_> = by_partition.into_values().collect();
    partitions.sort_unstable_by(|(one, _), (other, _)| one.min.cmp(&other.min));
    let reads = partitions.into_iter().flat_map(|(range, indexes)| match indexes[..] {
        [index] => vec![PartitionRead::Point(index)],
        _ => queries(items, &range, &indexes),
    });
    reads.collect()
}

/// The queries for the items of one partition, each within its bounds.
fn queries(items: &[ItemIdentity], range: &EpkRange, indexes: &[usize]) -> Vec<PartitionRead> {
    let mut queries: Vec<Vec<usize>> = Vec::new();
    let mut bytes = 0;
    for &index in indexes {
        let length = items[index].id.len();
        match queries.last_mut() {
            Some(query) if query.len() < ITEMS_PER_QUERY_MAX && bytes + length <= ID_BYTES_PER_QUERY_MAX => {
                query.push(index);
                bytes += length;
            }
            _ => {
                queries.push(vec![index]);
                bytes = length;
            }
        }
    }
    queries.into_iter().map(|items| PartitionRead::Query { range: range.clone(), items }).collect()
}

fn incomplete_key(item: &ItemIdentity, definition: &PartitionKeyDefinition) -> Error {
    let (given, wanted) = (item.key.components().len(), definition.paths.len());
    let message = format!(
        "the partition key of item `{}` has {given} components and the container's {wanted}: give the whole key, or \
         query all items with the prefix of a key by `query_items(…).partition_key(…)`",
        item.id
    );
    Error::new(ErrorKind::BadRequest, message)
}

/// The body of a query for these items. Ids and keys are parameters, so nothing has to be escaped.
pub(super) fn query_body(items: &[&ItemIdentity], definition: &PartitionKeyDefinition) -> Result<Bytes> {
    let mut by_key: Vec<(&PartitionKey, Vec<&str>)> = Vec::new();
    let mut positions: HashMap<&PartitionKey, usize> = HashMap::new();
    for item in items {
        let position = *positions.entry(&item.key).or_insert_with(|| {
            by_key.push((&item.key, Vec::new()));
            by_key.len() - 1
        });
        by_key[position].1.push(&item.id);
    }
    let mut parameters = Parameters::default();
    // If the id is the partition key, it says all.
    let text = if matches!(&definition.paths[..], [path] if *path.segments() == ["id"]) {
        let ids: Vec<&str> = items.iter().map(|item| &*item.id).collect();
        parameters.ids(&ids)
    } else {
        let conditions: Vec<String> = by_key
            .iter()
            .map(|(key, ids)| {
                let levels = definition.paths.iter().zip(key.components());
                let levels: Vec<String> =
                    levels.map(|(path, component)| parameters.level(path, component)).collect();
                format!("({} AND {})", levels.join(" AND "), parameters.ids(ids))
            })
            .collect();
        conditions.join(" OR ")
    };
    to_body(&json!({"query": format!("SELECT * FROM c WHERE {text}"), "parameters": parameters.0}))
}

/// The parameters of a query so far.
#[derive(Default)]
struct Parameters(Vec<Value>);

impl Parameters {
    /// The name of a new parameter with this value.
    fn name(&mut self, value: impl Into<Value>) -> String {
        let name = format!("@p{}", self.0.len());
        self.0.push(json!({"name": name, "value": value.into()}));
        name
    }

    fn ids(&mut self, ids: &[&str]) -> String {
        match ids {
            [id] => format!("c.id = {}", self.name(*id)),
            _ => {
                let names: Vec<String> = ids.iter().map(|id| self.name(*id)).collect();
                format!("c.id IN ({})", names.join(", "))
            }
        }
    }

    /// The condition that one level of the partition key has this value.
    fn level(&mut self, path: &PartitionKeyPath, component: &PartitionKeyComponent) -> String {
        let segments = path.segments().iter().map(|segment| format!("[{}]", Value::from(segment.as_str())));
        let property = format!("c{}", segments.collect::<String>());
        match component {
            // Objects and arrays have the key of a property that is missing.
            PartitionKeyComponent::Undefined => format!("NOT IS_PRIMITIVE({property})"),
            PartitionKeyComponent::Null => format!("IS_NULL({property})"),
            PartitionKeyComponent::Bool(value) => format!("{property} = {}", self.name(*value)),
            PartitionKeyComponent::Number(value) => format!("{property} = {}", self.name(*value)),
            PartitionKeyComponent::String(value) => format!("{property} = {}", self.name(value.as_str())),
        }
    }
}

/// The partition key and id of an item; none if it is no item.
pub(super) fn identity_of(item: &[u8], definition: &PartitionKeyDefinition) -> Option<ItemIdentity> {
    let item: &RawValue = serde_json::from_slice(item).ok()?;
    let id = serde_json::from_str(property(item, "id")?.get()).ok()?;
    let component = |path: &PartitionKeyPath| {
        let value = path.segments().iter().try_fold(item, |value, name| property(value, name));
        // A property that is missing, or lies in something that is no object, is undefined.
        let value = value.and_then(|value| serde_json::from_str::<Value>(value.get()).ok());
        value.as_ref().map_or(PartitionKeyComponent::Undefined, PartitionKeyComponent::from)
    };
    Some(ItemIdentity { key: PartitionKey::new(definition.paths.iter().map(component).collect()), id })
}

/// A property of an object, without reading the others.
fn property<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    let members: HashMap<std::borrow::Cow<'a, str>, &'a RawValue> =
        serde_json::from_str(object.get()).ok()?;
    members.get(name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(paths: &[&str]) -> PartitionKeyDefinition {
        match paths {
            [path] => PartitionKeyDefinition::hash(path).expect("a path"),
            paths => PartitionKeyDefinition::multi_hash(paths).expect("paths"),
        }
    }

    #[track_caller]
    fn check_query(paths: &[&str], items: &[ItemIdentity], text: &str, values: &[Value]) {
        let items: Vec<&ItemIdentity> = items.iter().collect();
        let body = query_body(&items, &definition(paths)).expect("a body");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["query"], format!("SELECT * FROM c WHERE {text}"));
        let parameters = body["parameters"].as_array().expect("a list");
        let given: Vec<Value> = parameters.iter().map(|parameter| parameter["value"].clone()).collect();
        assert_eq!(given, values);
    }

    #[test]
    fn items_of_one_key_share_a_condition() {
        let items = [("a", "1"), ("b", "2"), ("a", "3")].map(ItemIdentity::from);
        check_query(
            &["/customer"],
            &items,
            r#"(c["customer"] = @p0 AND c.id IN (@p1, @p2)) OR (c["customer"] = @p3 AND c.id = @p4)"#,
            &["a", "1", "3", "b", "2"].map(Value::from),
        );
        let ids = [("1", "1"), ("2", "2")].map(ItemIdentity::from);
        check_query(&["/id"], &ids, "c.id IN (@p0, @p1)", &["1", "2"].map(Value::from));
    }

    #[test]
    fn every_kind_of_key_component_has_a_condition() {
        let key = PartitionKey::new(vec![
            PartitionKeyComponent::Undefined,
            PartitionKeyComponent::Null,
            PartitionKeyComponent::Bool(true),
        ]);
        check_query(
            &["/a/b", "/c", "/'d \"e\"'"],
            &[ItemIdentity::new(key, "x")],
            r#"(NOT IS_PRIMITIVE(c["a"]["b"]) AND IS_NULL(c["c"]) AND c["d \"e\""] = @p0 AND c.id = @p1)"#,
            &[true.into(), "x".into()],
        );
    }

    #[test]
    fn the_identity_of_an_item_is_read_at_the_paths_of_the_container() {
        let definition = definition(&["/a/b", "/n"]);
        for (item, key, id) in [
            (r#"{"id":"x","a":{"b":"k"},"n":1.0}"#, vec!["k".into(), 1.into()], "x"),
            (
                r#"{"id":"\u0078","n":null,"a":3}"#,
                vec![PartitionKeyComponent::Undefined, PartitionKeyComponent::Null],
                "x",
            ),
            (
                r#"{"id":"y","a":{"b":[1]},"n":false}"#,
                vec![PartitionKeyComponent::Undefined, false.into()],
                "y",
            ),
        ] {
            let expected = ItemIdentity::new(PartitionKey::new(key), id);
            assert_eq!(identity_of(item.as_bytes(), &definition), Some(expected), "{item}");
        }
        assert_eq!(identity_of(b"[1]", &definition), None);
    }

    #[test]
    fn queries_stay_within_their_bounds() {
        let items: Vec<ItemIdentity> = (0..2500).map(|n| ItemIdentity::new("k", n.to_string())).collect();
        let indexes: Vec<usize> = (0..items.len()).collect();
        let sizes = |items: &[ItemIdentity]| -> Vec<usize> {
            let queries = queries(items, &EpkRange::FULL, &indexes[..items.len()]);
            queries
                .iter()
                .map(|read| match read {
                    PartitionRead::Query { items, .. } => items.len(),
                    PartitionRead::Point(_) => 1,
                })
                .collect()
        };
        assert_eq!(sizes(&items), [1000, 1000, 500]);
        let long = "i".repeat(ID_BYTES_PER_QUERY_MAX / 2);
        let long: Vec<ItemIdentity> = (0..3).map(|_| ItemIdentity::new("k", long.clone())).collect();
        assert_eq!(sizes(&long), [2, 1]);
    }
}
