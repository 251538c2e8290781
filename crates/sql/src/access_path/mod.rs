//! Access paths: what an index can do for a query, as data.
//!
//! A [`Filter`] describes the documents that can satisfy WHERE in terms that an index understands:
//! predicates on paths. It never excludes a matching document. Where it cannot be exact it accepts more,
//! and [`AccessPath::exact`] is false. Choosing an index is left to the store.

mod analyze;
mod call;
mod intersect;
mod partition_key_filter;
mod path;
mod refine;

use std::fmt;
use std::ops::Bound;

use smol_str::SmolStr;

pub use partition_key_filter::PartitionKeyFilter;
pub use path::{DocPath, DocStep};

use crate::ast::Direction;
use crate::bound::Pipeline;
use crate::value::{Value, ValueKind, compare, deep_equal};

/// What an index can do for a query.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessPath {
    /// A filter that accepts every document that WHERE accepts.
    pub filter: Filter,
    /// Whether the filter accepts no other documents, so that WHERE need not be evaluated.
    pub exact: bool,
    /// The ORDER BY keys, if all of them are document paths.
    pub order: Vec<(DocPath, Direction)>,
    /// Whether an index can provide the order: every ORDER BY key (possibly none) is in `order`.
    pub ordering_only_paths: bool,
}

/// A condition on documents that an index can evaluate.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// The filter that accepts every document.
    All,
    /// The filter that accepts no document.
    Nothing,
    /// Accepts documents in which some value at the path satisfies the predicate.
    Predicate {
        /// The path to the value.
        path: DocPath,
        /// The predicate on the value.
        predicate: Predicate,
    },
    /// Accepts documents that all filters accept.
    And(Vec<Filter>),
    /// Accepts documents that any filter accepts.
    Or(Vec<Filter>),
}

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// The value equals this scalar.
    Equals(Value),
    /// The value has the scalar type of the bounds and lies between them. At least one bound exists.
    Range {
        /// The lower bound of the range.
        low: Bound<Value>,
        /// The upper bound of the range.
        high: Bound<Value>,
    },
    /// The value is a string with this prefix.
    Prefix(SmolStr),
    /// The value is defined.
    Defined,
}

/// The document paths that functions in the projection of a query over documents read.
pub(crate) fn function_paths(pipeline: &Pipeline) -> Vec<DocPath> {
    analyze::function_paths(pipeline)
}

impl AccessPath {
    /// The access path of a bound query.
    pub(crate) fn of(pipeline: &Pipeline) -> AccessPath {
        analyze::analyze(pipeline)
    }
}

impl Filter {
    /// The filter that applies `test` at `path`.
    pub(crate) fn predicate(path: DocPath, test: Predicate) -> Filter {
        Filter::Predicate { path, predicate: test }
    }

    /// The simplified conjunction of `filters`.
    pub fn and(filters: impl IntoIterator<Item = Filter>) -> Filter {
        let mut parts = Vec::new();
        for filter in filters {
            match filter {
                Filter::All => {}
                Filter::Nothing => return Filter::Nothing,
                Filter::And(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        if !combine(&mut parts) {
            return Filter::Nothing;
        }
        match parts.len() {
            0 => Filter::All,
            1 => parts.remove(0),
            _ => Filter::And(parts),
        }
    }

    /// The simplified disjunction of `filters`.
    pub fn or(filters: impl IntoIterator<Item = Filter>) -> Filter {
        let mut parts = Vec::new();
        for filter in filters {
            match filter {
                Filter::Nothing => {}
                Filter::All => return Filter::All,
                Filter::Or(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match parts.len() {
            0 => Filter::Nothing,
            1 => parts.remove(0),
            _ => Filter::Or(parts),
        }
    }

    /// Whether the filter accepts `document`. An index computes the same without reading every document.
    pub fn accepts(&self, document: &Value) -> bool {
        match self {
            Filter::All => true,
            Filter::Nothing => false,
            Filter::Predicate { path, predicate: test } => {
                path.any(document, &mut |value| test.accepts(value))
            }
            Filter::And(parts) => parts.iter().all(|part| part.accepts(document)),
            Filter::Or(parts) => parts.iter().any(|part| part.accepts(document)),
        }
    }
}

/// The largest number of filters that are combined, since combining compares them pairwise.
const COMBINED_MAX: usize = 64;

/// Combines predicates on the same value; returns `false` if they contradict each other. A path through
/// array elements may lead to several values, one for each predicate, so those are not combined.
fn combine(parts: &mut Vec<Filter>) -> bool {
    if parts.len() > COMBINED_MAX {
        return true;
    }
    let mut at = 0;
    while at < parts.len() {
        let mut other = at + 1;
        while other < parts.len() {
            let both = match (&parts[at], &parts[other]) {
                (
                    Filter::Predicate { path: left, predicate: first },
                    Filter::Predicate { path: right, predicate: second },
                ) if left == right && !left.has_element() => intersect::intersect(first, second),
                _ => intersect::Intersection::Separate,
            };
            match both {
                intersect::Intersection::Nothing => return false,
                intersect::Intersection::Separate => other += 1,
                intersect::Intersection::One(combined) => {
                    if let Filter::Predicate { predicate: test, .. } = &mut parts[at] {
                        *test = combined;
                    }
                    parts.remove(other);
                    // Filters compared before may combine with the new predicate.
                    other = at + 1;
                }
            }
        }
        at += 1;
    }
    true
}

impl Predicate {
    /// The predicate that accepts all strings, all numbers or all booleans.
    pub(crate) fn of_kind(kind: ValueKind) -> Predicate {
        match kind {
            ValueKind::Null => Predicate::Equals(Value::Null),
            ValueKind::Bool => Predicate::Range {
                low: Bound::Included(Value::Bool(false)),
                high: Bound::Included(Value::Bool(true)),
            },
            ValueKind::Number => Predicate::Range {
                low: Bound::Included(Value::from(f64::NEG_INFINITY)),
                high: Bound::Unbounded,
            },
            ValueKind::String => Predicate::Prefix(SmolStr::default()),
            ValueKind::Undefined | ValueKind::Array | ValueKind::Object => Predicate::Defined,
        }
    }

    /// Whether the predicate accepts `value`.
    pub fn accepts(&self, value: &Value) -> bool {
        match self {
            Predicate::Equals(expected) => value.is_defined() && deep_equal(value, expected),
            Predicate::Defined => value.is_defined(),
            Predicate::Prefix(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix.as_str())),
            Predicate::Range { low, high } => {
                let above = match low {
                    Bound::Unbounded => true,
                    Bound::Included(low) => compare(value, low).is_some_and(|order| order.is_ge()),
                    Bound::Excluded(low) => compare(value, low).is_some_and(|order| order.is_gt()),
                };
                let below = match high {
                    Bound::Unbounded => true,
                    Bound::Included(high) => compare(value, high).is_some_and(|order| order.is_le()),
                    Bound::Excluded(high) => compare(value, high).is_some_and(|order| order.is_lt()),
                };
                above && below
            }
        }
    }
}

/// One line for tests and logs: `exact: /a = 1 AND /tags/[] = "x"; order: /a ASC`.
impl fmt::Display for AccessPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", if self.exact { "exact" } else { "check" }, self.filter)?;
        if !self.ordering_only_paths {
            f.write_str("; order: computed")?;
        } else if !self.order.is_empty() {
            f.write_str("; order: ")?;
            for (at, (path, direction)) in self.order.iter().enumerate() {
                let direction = if *direction == Direction::Ascending { "ASC" } else { "DESC" };
                write!(f, "{}{path} {direction}", if at > 0 { ", " } else { "" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |parts: &[Filter], word: &str, f: &mut fmt::Formatter<'_>| {
            f.write_str("(")?;
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    write!(f, " {word} ")?;
                }
                write!(f, "{part}")?;
            }
            f.write_str(")")
        };
        match self {
            Filter::All => f.write_str("all"),
            Filter::Nothing => f.write_str("nothing"),
            Filter::Predicate { path, predicate: test } => write!(f, "{path} {test}"),
            Filter::And(parts) => join(parts, "AND", f),
            Filter::Or(parts) => join(parts, "OR", f),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Equals(value) => write!(f, "= {value}"),
            Predicate::Prefix(prefix) => write!(f, "starts with {}", Value::String(prefix.clone())),
            Predicate::Defined => f.write_str("is defined"),
            Predicate::Range { low, high } => {
                f.write_str("in ")?;
                match low {
                    Bound::Unbounded => f.write_str("(..")?,
                    Bound::Included(low) => write!(f, "[{}..", display_value(low))?,
                    Bound::Excluded(low) => write!(f, "({}..", display_value(low))?,
                }
                match high {
                    Bound::Unbounded => f.write_str(")"),
                    Bound::Included(high) => write!(f, "{}]", display_value(high)),
                    Bound::Excluded(high) => write!(f, "{})", display_value(high)),
                }
            }
        }
    }
}

/// The value as text; infinities have no JSON form.
fn display_value(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
