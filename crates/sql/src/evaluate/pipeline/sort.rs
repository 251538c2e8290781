//! ORDER BY on unordered rows.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::ast::Direction;
use crate::bound::SortKey;
use crate::value::{HashableValue, Value, total_order};

/// Rows to be sorted. If only the first `bound` rows are needed, at most twice as many are held.
#[derive(Debug)]
pub(super) struct Sorter {
    directions: Vec<Direction>,
    bound: Option<usize>,
    rows: Vec<SortRow>,
    next_sequence: u64,
    /// Once more than `bound` rows were seen: the keys that a new row must precede to be among the first.
    worst: Option<Vec<Value>>,
    /// With DISTINCT: the index of the best row of each value.
    row_indexes: Option<HashMap<HashableValue, usize>>,
}

#[derive(Debug)]
struct SortRow {
    keys: Vec<Value>,
    /// The position in the input, which orders rows with equal keys.
    sequence: u64,
    row: Value,
}

impl Sorter {
    /// A sorter by `order` that returns at most `bound` rows.
    pub(super) fn new(order: &[SortKey], bound: Option<usize>, distinct: bool) -> Sorter {
        Sorter {
            directions: order.iter().map(|key| key.direction).collect(),
            // Equal rows collapse, so with DISTINCT any number of rows may be needed for the first n.
            bound: if distinct { None } else { bound },
            rows: Vec::new(),
            next_sequence: 0,
            worst: None,
            row_indexes: distinct.then(HashMap::new),
        }
    }

    /// Adds a row unless it cannot be among the first; `row` is only called if it is needed.
    pub(super) fn offer(&mut self, keys: Vec<Value>, row: impl FnOnce() -> Option<Value>) {
        if self.worst.as_ref().is_some_and(|worst| compare_keys(&self.directions, &keys, worst).is_ge()) {
            return;
        }
        let Some(row) = row() else { return };
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        if let Some(places) = &mut self.row_indexes {
            match places.get(&HashableValue::new(row.clone())) {
                Some(&at) => {
                    if compare_keys(&self.directions, &keys, &self.rows[at].keys).is_lt() {
                        self.rows[at] = SortRow { keys, sequence, row };
                    }
                    return;
                }
                None => {
                    places.insert(HashableValue::new(row.clone()), self.rows.len());
                }
            }
        }
        self.rows.push(SortRow { keys, sequence, row });
        self.drop_rows_beyond_bound();
    }

    /// Drops rows beyond the first `bound`. Each row is visited a constant number of times.
    fn drop_rows_beyond_bound(&mut self) {
        let Some(bound) = self.bound else { return };
        if bound == 0 {
            self.rows.clear();
        } else if self.rows.len() >= bound.saturating_mul(2) {
            let directions = &self.directions;
            self.rows.select_nth_unstable_by(bound - 1, |a, b| compare_rows(directions, a, b));
            self.rows.truncate(bound);
            self.worst = Some(self.rows[bound - 1].keys.clone());
        }
    }

    /// The rows in sorted order.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Value> + use<> {
        let mut rows = std::mem::take(&mut self.rows);
        let directions = &self.directions;
        rows.sort_unstable_by(|a, b| compare_rows(directions, a, b));
        rows.into_iter().map(|row| row.row)
    }
}

fn compare_rows(directions: &[Direction], left: &SortRow, right: &SortRow) -> Ordering {
    compare_keys(directions, &left.keys, &right.keys).then(left.sequence.cmp(&right.sequence))
}

fn compare_keys(directions: &[Direction], left: &[Value], right: &[Value]) -> Ordering {
    directions
        .iter()
        .zip(left.iter().zip(right))
        .map(|(direction, (left, right))| match direction {
            Direction::Ascending => total_order(left, right),
            Direction::Descending => total_order(right, left),
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::BoundExpression;
    use proptest::prelude::*;

    fn order(directions: &[Direction]) -> Vec<SortKey> {
        let key = |direction: &Direction| SortKey {
            key: BoundExpression::Constant(Value::Null),
            direction: *direction,
        };
        directions.iter().map(key).collect()
    }

    proptest! {
        #[test]
        fn a_bounded_sort_equals_a_full_sort_and_holds_a_bounded_number_of_rows(
            keys in prop::collection::vec((0..5i64, 0..5i64), 0..200),
            bound in 0..20usize,
        ) {
            let order = order(&[Direction::Ascending, Direction::Descending]);
            let mut sorter = Sorter::new(&order, Some(bound), false);
            for (at, (first, second)) in keys.iter().enumerate() {
                let keys = vec![Value::from(*first), Value::from(*second)];
                sorter.offer(keys, || Some(Value::from(at as i64)));
                prop_assert!(sorter.rows.len() <= bound * 2);
            }
            let found: Vec<i64> = sorter.finish().take(bound).filter_map(|row| row.as_i64()).collect();
            let mut expected: Vec<usize> = (0..keys.len()).collect();
            expected.sort_by_key(|at| (keys[*at].0, -keys[*at].1));
            let expected: Vec<i64> = expected.into_iter().take(bound).map(|at| at as i64).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
