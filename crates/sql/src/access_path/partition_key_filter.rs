//! The logical partitions that a query can match.

use protocol::container::PartitionKeyDefinition;
use protocol::partition::{PartitionKey, PartitionKeyComponent};

use super::{DocPath, DocStep, Filter, Predicate};
use crate::value::Value;

/// The largest number of partition keys to which a query is routed.
const KEYS_MAX: usize = 4096;

/// The logical partitions that can hold matching documents.
#[derive(Clone, Debug, PartialEq)]
pub enum PartitionKeyFilter {
    /// Any logical partition can match.
    Full,
    /// No logical partition can match.
    Nothing,
    /// Only these complete partition keys can match; without duplicates.
    Points(Vec<PartitionKey>),
    /// Only partition keys with these prefixes can match; without duplicates. Some may be complete keys.
    Prefixes(Vec<PartitionKey>),
}

/// The known components of a partition key, level by level.
type KeyComponents = Vec<Option<PartitionKeyComponent>>;

impl PartitionKeyFilter {
    /// The partition keys that `filter` allows in a container with this definition.
    pub(crate) fn of(filter: &Filter, definition: &PartitionKeyDefinition) -> PartitionKeyFilter {
        let levels: Vec<DocPath> = definition
            .paths
            .iter()
            .map(|path| DocPath(path.segments().iter().map(|name| DocStep::Key(name.into())).collect()))
            .collect();
        let Some(alternatives) = alternatives(filter, &levels) else { return PartitionKeyFilter::Full };
        if alternatives.is_empty() {
            return PartitionKeyFilter::Nothing;
        }
        let mut keys: Vec<PartitionKey> = Vec::with_capacity(alternatives.len());
        for known in alternatives {
            let key = PartitionKey::new(known.into_iter().map_while(|component| component).collect());
            if key.components().is_empty() {
                return PartitionKeyFilter::Full;
            }
            keys.push(key);
        }
        let mut seen = std::collections::HashSet::new();
        keys.retain(|key| seen.insert(key.clone()));
        if keys.iter().all(|key| key.components().len() == levels.len()) {
            PartitionKeyFilter::Points(keys)
        } else {
            PartitionKeyFilter::Prefixes(keys)
        }
    }
}

/// The alternatives that satisfy `filter`, as partition key components; `None` if there are too many.
fn alternatives(filter: &Filter, levels: &[DocPath]) -> Option<Vec<KeyComponents>> {
    let unknown = || vec![vec![None; levels.len()]];
    match filter {
        Filter::All => Some(unknown()),
        Filter::Nothing => Some(Vec::new()),
        Filter::Predicate { path, predicate: Predicate::Equals(value) } => {
            let Some(level) = levels.iter().position(|level| level == path) else { return Some(unknown()) };
            Some(
                components(value)
                    .into_iter()
                    .map(|component| {
                        let mut known = vec![None; levels.len()];
                        known[level] = Some(component);
                        known
                    })
                    .collect(),
            )
        }
        Filter::Predicate { .. } => Some(unknown()),
        Filter::Or(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(alternatives(part, levels)?);
                if all.len() > KEYS_MAX {
                    return None;
                }
            }
            Some(all)
        }
        Filter::And(parts) => {
            let mut all = unknown();
            for part in parts {
                let more = alternatives(part, levels)?;
                if all.len().saturating_mul(more.len()) > KEYS_MAX {
                    return None;
                }
                all =
                    all.iter().flat_map(|left| more.iter().filter_map(|right| merged(left, right))).collect();
            }
            Some(all)
        }
    }
}

/// The components of both, unless they contradict each other.
fn merged(left: &KeyComponents, right: &KeyComponents) -> Option<KeyComponents> {
    left.iter()
        .zip(right)
        .map(|pair| match pair {
            (Some(left), Some(right)) if left != right => None,
            (left, right) => Some(left.clone().or_else(|| right.clone())),
        })
        .collect()
}

/// The partition key components that equal a scalar. Zero has two: they are equal in SQL but have different
/// hashes.
fn components(value: &Value) -> Vec<PartitionKeyComponent> {
    match value {
        Value::Null => vec![PartitionKeyComponent::Null],
        Value::Bool(value) => vec![PartitionKeyComponent::Bool(*value)],
        Value::Number(number) if number.as_f64() == 0.0 => {
            vec![PartitionKeyComponent::Number(0.0), PartitionKeyComponent::Number(-0.0)]
        }
        Value::Number(number) => vec![PartitionKeyComponent::Number(number.as_f64())],
        Value::String(text) => vec![PartitionKeyComponent::String(text.to_string())],
        Value::Undefined | Value::Array(_) | Value::Object(_) => Vec::new(),
    }
}
