//! The intersection of two predicates on one value.

use std::ops::Bound;

use super::Predicate;
use crate::value::{Value, compare};

/// The predicate that a value satisfies exactly if it satisfies both.
pub(super) fn intersect(left: &Predicate, right: &Predicate) -> Intersection {
    match (left, right) {
        (Predicate::Defined, other) | (other, Predicate::Defined) => Intersection::One(other.clone()),
        (Predicate::Equals(value), other) | (other, Predicate::Equals(value)) => {
            if other.accepts(value) {
                Intersection::One(Predicate::Equals(value.clone()))
            } else {
                Intersection::Nothing
            }
        }
        (Predicate::Prefix(left), Predicate::Prefix(right)) => {
            let (shorter, longer) = if left.len() <= right.len() { (left, right) } else { (right, left) };
            if longer.starts_with(shorter.as_str()) {
                Intersection::One(Predicate::Prefix(longer.clone()))
            } else {
                Intersection::Nothing
            }
        }
        (
            Predicate::Range { low: low_left, high: high_left },
            Predicate::Range { low: low_right, high: high_right },
        ) => {
            let low = tighter(low_left, low_right, true);
            let high = tighter(high_left, high_right, false);
            match (low, high) {
                (Some(low), Some(high)) if fits(&low, &high) => {
                    Intersection::One(Predicate::Range { low, high })
                }
                // The types differ, or the ranges are disjoint.
                _ => Intersection::Nothing,
            }
        }
        (Predicate::Prefix(_), Predicate::Range { .. }) | (Predicate::Range { .. }, Predicate::Prefix(_)) => {
            Intersection::Separate
        }
    }
}

/// The intersection of two predicates.
#[derive(Debug, PartialEq)]
pub(super) enum Intersection {
    /// A single predicate is equivalent to both.
    One(Predicate),
    /// No value satisfies both.
    Nothing,
    /// No single predicate is equivalent to both.
    Separate,
}

/// The bound that accepts fewer values; `None` if the types differ.
fn tighter(left: &Bound<Value>, right: &Bound<Value>, is_low: bool) -> Option<Bound<Value>> {
    let (Some((left_value, left_open)), Some((right_value, right_open))) = (end(left), end(right)) else {
        return Some(if matches!(left, Bound::Unbounded) { right.clone() } else { left.clone() });
    };
    let order = compare(left_value, right_value)?;
    let order = if is_low { order } else { order.reverse() };
    // At the same value the exclusive bound accepts fewer values.
    let left_wins = order.is_gt() || (order.is_eq() && (left_open || !right_open));
    Some(if left_wins { left.clone() } else { right.clone() })
}

fn end(bound: &Bound<Value>) -> Option<(&Value, bool)> {
    match bound {
        Bound::Unbounded => None,
        Bound::Included(value) => Some((value, false)),
        Bound::Excluded(value) => Some((value, true)),
    }
}

fn fits(low: &Bound<Value>, high: &Bound<Value>) -> bool {
    let (Some((low, low_open)), Some((high, high_open))) = (end(low), end(high)) else { return true };
    compare(low, high).is_some_and(|order| order.is_lt() || (order.is_eq() && !low_open && !high_open))
}
