//! Sets of distinct values, for the set functions and MAKESET.
//!
//! Values are compared structurally: numbers by value, the order of properties ignored.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::value::{Value, deep_equal, total_order};

/// Up to this many values, a linear search is cheaper than a tree.
const WALK_MAX: usize = 16;

/// A set of distinct values. Adding costs a linear search while there are few, and a logarithmic number of
/// comparisons when there are many.
#[derive(Debug, Default)]
pub(crate) struct DistinctValues {
    few: Vec<Value>,
    many: BTreeSet<Ordered>,
}

impl DistinctValues {
    /// Adds `value` unless it contains an equal one; returns whether it was added.
    pub(crate) fn insert(&mut self, value: &Value) -> bool {
        if !self.many.is_empty() {
            return self.many.insert(Ordered(value.clone()));
        }
        if self.few.iter().any(|seen| deep_equal(seen, value)) {
            return false;
        }
        self.few.push(value.clone());
        if self.few.len() > WALK_MAX {
            self.many = self.few.drain(..).map(Ordered).collect();
        }
        true
    }

    /// Whether the set contains an equal value.
    pub(crate) fn contains(&self, value: &Value) -> bool {
        if self.many.is_empty() {
            self.few.iter().any(|seen| deep_equal(seen, value))
        } else {
            self.many.contains(&Ordered(value.clone()))
        }
    }
}

impl<'a> FromIterator<&'a Value> for DistinctValues {
    fn from_iter<I: IntoIterator<Item = &'a Value>>(values: I) -> DistinctValues {
        let mut distinct = DistinctValues::default();
        for value in values {
            distinct.insert(value);
        }
        distinct
    }
}

/// A value in the total order of ORDER BY, in which equal means structurally equal.
#[derive(Debug)]
struct Ordered(Value);

impl PartialEq for Ordered {
    fn eq(&self, other: &Ordered) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Ordered) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Ordered) -> Ordering {
        total_order(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_new_once_whether_few_or_many() {
        for count in [1, WALK_MAX as i64, WALK_MAX as i64 + 1, 200] {
            let mut distinct = DistinctValues::default();
            for round in 0..2 {
                for number in 0..count {
                    assert_eq!(distinct.insert(&Value::from(number)), round == 0, "{number} of {count}");
                }
            }
            assert!(distinct.contains(&Value::from(count - 1)));
            assert!(!distinct.contains(&Value::from(count)));
            assert!(!distinct.contains(&Value::from("0")));
        }
    }
}
