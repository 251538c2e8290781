//! How far an ordered walk through one EPK range has come.
//!
//! A [`SortPosition`] is the keys of the last row that was handed out, and which of the rows with those
//! very keys were. It does not depend on partitions or on the service's continuations, so a walk can
//! be taken up after a split, or by another process: the service is asked for rows from those keys on
//! ([`resume_filter`]), and what was handed out is dropped.

use std::cmp::Ordering;

use protocol::query::SortOrder;
use protocol::resource_id::ItemRid;
use sql::Value;
use sql::value::total_order;

/// Documents with the same keys that are remembered one by one; beyond them the order in which they
/// came stands for all of them.
const TIES_MAX: usize = 64;

/// The last keys that were handed out, and which documents with these keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SortPosition {
    pub(super) keys: Vec<Value>,
    pub(super) ties: Ties,
}

/// Documents that were handed out, all with the same keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ties {
    /// Each document, and how many of its rows: a join makes several of one.
    pub(super) documents: Vec<(Box<str>, u32)>,
    /// All documents up to this one, in the order of creation.
    pub(super) up_to: Option<u64>,
    /// All documents from this one on.
    pub(super) down_to: Option<u64>,
    /// Where in `documents` those of this walk begin; the others are of walks that were taken up.
    walk_from: usize,
}

impl SortPosition {
    /// The position after the first row.
    pub(super) fn after(keys: Vec<Value>, rid: Box<str>) -> SortPosition {
        let mut ties = Ties::default();
        ties.add(rid);
        SortPosition { keys, ties }
    }

    /// After one more row, which does not come before the last. Allocates nothing while keys differ.
    pub(super) fn advance(&mut self, keys: Vec<Value>, rid: Box<str>) {
        if self.keys.iter().zip(&keys).any(|(known, key)| total_order(known, key).is_ne()) {
            self.keys = keys;
            self.ties.clear();
        }
        self.ties.add(rid);
    }
}

impl Ties {
    fn clear(&mut self) {
        self.documents.clear();
        (self.up_to, self.down_to, self.walk_from) = (None, None, 0);
    }

    fn add(&mut self, rid: Box<str>) {
        if let Some((last, rows)) = self.documents.last_mut()
            && *last == rid
        {
            *rows += 1;
            return;
        }
        // A document that another walk left in the middle.
        if let Some((_, rows)) = self.documents[..self.walk_from].iter_mut().find(|(known, _)| *known == rid)
        {
            *rows += 1;
            return;
        }
        let of_this_walk = self.documents.len() - self.walk_from;
        if of_this_walk > 0 && of_this_walk.is_multiple_of(TIES_MAX) {
            self.condense();
        }
        self.documents.push((rid, 1));
    }

    /// Lets the order of this walk's documents stand for all but the last, of which there may be more
    /// rows. In no order that is known they stay as they are; only a service that orders equal rows in
    /// a way of its own makes the list long.
    fn condense(&mut self) {
        let walked = &self.documents[self.walk_from..self.documents.len() - 1];
        let ordinals: Option<Vec<u64>> = walked.iter().map(|(rid, _)| ordinal(rid)).collect();
        let Some(ordinals) = ordinals else { return };
        let Some(&last) = ordinals.last() else { return };
        if ordinals.is_sorted() {
            self.up_to = self.up_to.max(Some(last));
        } else if ordinals.iter().rev().is_sorted() {
            self.down_to = Some(self.down_to.map_or(last, |known| known.min(last)));
        } else {
            return;
        }
        self.documents.drain(self.walk_from..self.documents.len() - 1);
    }

    /// The documents of an earlier scan, for the scan that resumes it.
    pub(super) fn new(documents: Vec<(Box<str>, u32)>, up_to: Option<u64>, down_to: Option<u64>) -> Ties {
        Ties { walk_from: documents.len(), documents, up_to, down_to }
    }

    /// Whether a row of this document was handed out already. `seen` is how many of the document's
    /// rows this walk has met before.
    pub(super) fn contains(&self, rid: &str, seen: u32) -> bool {
        if let Some((_, rows)) = self.documents.iter().find(|(known, _)| **known == *rid) {
            return seen < *rows;
        }
        ordinal(rid).is_some_and(|ordinal| {
            self.up_to.is_some_and(|up_to| ordinal <= up_to)
                || self.down_to.is_some_and(|down_to| ordinal >= down_to)
        })
    }
}

fn ordinal(rid: &str) -> Option<u64> {
    rid.parse::<ItemRid>().ok().map(|rid| rid.ordinal)
}

/// Drops rows that were handed out before, at the beginning of a walk that is taken up again.
#[derive(Clone, Debug)]
pub(super) struct CatchUp {
    until: SortPosition,
    /// The document met last, and how many of its rows.
    last: Option<(Box<str>, u32)>,
}

impl CatchUp {
    pub(super) fn new(until: SortPosition) -> CatchUp {
        CatchUp { until, last: None }
    }

    /// Where the walk that is taken up begins.
    pub(super) fn position(&self) -> SortPosition {
        let SortPosition { keys, ties } = self.until.clone();
        SortPosition { keys, ties: Ties::new(ties.documents, ties.up_to, ties.down_to) }
    }

    /// Whether a row is new; `None` when it and all that follow are.
    pub(super) fn is_new(&mut self, keys: &[Value], rid: &str, directions: &[SortOrder]) -> Option<bool> {
        match compare_keys(directions, keys, &self.until.keys) {
            Ordering::Less => Some(false),
            Ordering::Greater => None,
            Ordering::Equal => {
                let seen = match &mut self.last {
                    Some((last, seen)) if **last == *rid => {
                        *seen += 1;
                        *seen
                    }
                    last => {
                        *last = Some((rid.into(), 0));
                        0
                    }
                };
                Some(!self.until.ties.contains(rid, seen))
            }
        }
    }
}

/// Keys in the order of ORDER BY.
pub(super) fn compare_keys(directions: &[SortOrder], left: &[Value], right: &[Value]) -> Ordering {
    let pairs = left.iter().zip(right).zip(directions);
    let mut orders = pairs.map(|((left, right), direction)| match direction {
        SortOrder::Ascending => total_order(left, right),
        SortOrder::Descending => total_order(right, left),
    });
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// A condition that holds for all rows whose first key does not come before `key`. Later keys are left
/// to [`CatchUp`]: the rows this lets through in vain have the same first key.
pub(super) fn resume_filter(expression: &str, direction: SortOrder, key: &Value) -> String {
    /// Types between null and array, in order, and how to ask for them.
    const TYPES: [&str; 6] = ["IS_NULL", "IS_BOOL", "IS_NUMBER", "IS_STRING", "IS_ARRAY", "IS_OBJECT"];
    let rank = match key {
        Value::Undefined => None,
        Value::Null => Some(0),
        Value::Bool(_) => Some(1),
        Value::Number(_) => Some(2),
        Value::String(_) => Some(3),
        Value::Array(_) => Some(4),
        Value::Object(_) => Some(5),
    };
    let mut conditions: Vec<String> = Vec::new();
    match (rank, direction) {
        // Undefined comes first; going up, everything follows.
        (None, SortOrder::Ascending) => return "true".to_owned(),
        (None, SortOrder::Descending) => conditions.push(format!("NOT IS_DEFINED({expression})")),
        (Some(rank), direction) => {
            let comparable = matches!(rank, 1..=3);
            let (operator, others) = match direction {
                SortOrder::Ascending => (">=", &TYPES[rank + usize::from(comparable)..]),
                SortOrder::Descending => ("<=", &TYPES[..rank + usize::from(!comparable)]),
            };
            if comparable {
                conditions.push(format!("{expression} {operator} {key}"));
            }
            conditions.extend(others.iter().map(|test| format!("{test}({expression})")));
            if direction == SortOrder::Descending {
                conditions.push(format!("NOT IS_DEFINED({expression})"));
            }
        }
    }
    format!("({})", conditions.join(" OR "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::resource_id::{ContainerRid, DatabaseRid};
    use sql::value::parse;
    use sql::{QueryContext, QuerySchema, Statement, run_reference};

    use super::*;

    fn rid(ordinal: u64) -> String {
        let container = ContainerRid { database: DatabaseRid(1), container: 1 };
        ItemRid { container, ordinal }.to_string()
    }

    #[test]
    fn the_filter_lets_through_exactly_what_does_not_come_before() {
        let texts =
            ["", "null", "false", "true", "-1", "2.5", "\"\"", "\"a\\\"b\"", "[]", "[1]", "{}", "{\"a\":1}"];
        let values: Vec<Value> = texts
            .iter()
            .map(
                |text| if text.is_empty() { Value::Undefined } else { parse(text.as_bytes()).expect("JSON") },
            )
            .collect();
        let document = |value: &Value| Value::object([("k".into(), value.clone())]);
        for from in &values {
            for direction in [SortOrder::Ascending, SortOrder::Descending] {
                let filter = resume_filter("c.k", direction, from);
                let text = format!("SELECT VALUE c FROM c WHERE ({filter})");
                let statement = Statement::prepare(&text, &[], &QuerySchema::default()).expect(&text);
                for value in &values {
                    let passed = run_reference(&statement, [&document(value)], QueryContext::default())
                        .expect("runs")
                        .len();
                    let order =
                        compare_keys(&[direction], std::slice::from_ref(value), std::slice::from_ref(from));
                    // Arrays and objects of one type cannot be compared by the language: all pass.
                    let same_composite =
                        value.kind() == from.kind() && matches!(value, Value::Array(_) | Value::Object(_));
                    let expected = order.is_ge() || same_composite;
                    assert_eq!(passed == 1, expected, "{value} from {from} {direction:?}: {text}");
                }
            }
        }
    }

    proptest! {
        /// Stop after any row, take it up again in either order of equal rows, any number of times:
        /// every row once.
        #[test]
        fn every_row_is_handed_out_once(
            keys in prop::collection::vec(0i64..3, 1..300),
            stops in prop::collection::vec((1usize..120, any::<bool>()), 1..6),
            rows_each in 1u32..3,
        ) {
            let directions = [SortOrder::Ascending];
            let walk = |ascending: bool| {
                let mut rows: Vec<(i64, u64)> =
                    keys.iter().enumerate().map(|(ordinal, key)| (*key, ordinal as u64)).collect();
                rows.sort_by_key(|(key, ordinal)| (*key, if ascending { *ordinal } else { u64::MAX - ordinal }));
                rows.into_iter().flat_map(move |row| std::iter::repeat_n(row, rows_each as usize))
            };
            let mut handed_out: Vec<(i64, u64)> = Vec::new();
            let mut position: Option<SortPosition> = None;
            for (take, ascending) in stops.into_iter().chain([(usize::MAX, true)]) {
                let mut catching = position.take().map(CatchUp::new);
                position = catching.as_ref().map(CatchUp::position);
                let mut taken = 0;
                for (key, ordinal) in walk(ascending) {
                    if taken == take {
                        break;
                    }
                    let (keys, rid) = ([Value::from(key)], rid(ordinal));
                    let is_new = catching.as_mut().and_then(|catching| catching.is_new(&keys, &rid, &directions));
                    if is_new == Some(false) {
                        continue;
                    }
                    match &mut position {
                        Some(position) => position.advance(keys.to_vec(), rid.into()),
                        None => position = Some(SortPosition::after(keys.to_vec(), rid.into())),
                    }
                    handed_out.push((key, ordinal));
                    taken += 1;
                }
            }
            prop_assert!(handed_out.is_sorted_by_key(|(key, _)| *key));
            let mut expected: Vec<(i64, u64)> = walk(true).collect();
            expected.sort_unstable();
            handed_out.sort_unstable();
            prop_assert_eq!(handed_out, expected);
        }
    }
}
