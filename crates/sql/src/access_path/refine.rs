//! Comparisons with constants to tests.

use std::ops::Bound;

use super::analyze::{Approximation, Place, Places, defined, place_of, when};
use super::{Filter, Predicate};
use crate::ast::BinaryOperator;
use crate::bound::Code;
use crate::value::{Value, ValueKind, compare};

/// For which documents `left operator right` is exactly `wanted`.
pub(super) fn comparison(
    operator: BinaryOperator,
    (left, right): (&Code, &Code),
    wanted: bool,
    places: &Places,
) -> Approximation {
    let operator = if wanted { operator } else { opposite(operator) };
    let Some(operator) = is_comparison(operator).then_some(operator) else { return Approximation::unknown() };
    match (place_of(left, places), right, left, place_of(right, places)) {
        (Some(place), Code::Constant(constant), ..) => against(&place, operator, constant),
        (.., Code::Constant(constant), Some(place)) => against(&place, mirrored(operator), constant),
        // `condition = true` says what the condition says.
        (None, Code::Constant(Value::Bool(value)), ..) if operator == BinaryOperator::Equal => {
            when(left, *value, places)
        }
        (.., Code::Constant(Value::Bool(value)), None) if operator == BinaryOperator::Equal => {
            when(right, *value, places)
        }
        // Both sides have to be there to be compared.
        _ => defined(&[left, right], places),
    }
}

fn is_comparison(operator: BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Equal
            | BinaryOperator::NotEqual
            | BinaryOperator::Less
            | BinaryOperator::LessOrEqual
            | BinaryOperator::Greater
            | BinaryOperator::GreaterOrEqual
    )
}

/// The comparison that is true exactly where this one is false: neither is defined elsewhere.
fn opposite(operator: BinaryOperator) -> BinaryOperator {
    match operator {
        BinaryOperator::Equal => BinaryOperator::NotEqual,
        BinaryOperator::NotEqual => BinaryOperator::Equal,
        BinaryOperator::Less => BinaryOperator::GreaterOrEqual,
        BinaryOperator::LessOrEqual => BinaryOperator::Greater,
        BinaryOperator::Greater => BinaryOperator::LessOrEqual,
        BinaryOperator::GreaterOrEqual => BinaryOperator::Less,
        other => other,
    }
}

/// The comparison with its sides exchanged.
fn mirrored(operator: BinaryOperator) -> BinaryOperator {
    match operator {
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessOrEqual => BinaryOperator::GreaterOrEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterOrEqual => BinaryOperator::LessOrEqual,
        other => other,
    }
}

fn is_scalar(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Null | ValueKind::Bool | ValueKind::Number | ValueKind::String)
        && !is_nan(value)
}

/// NaN equals and precedes nothing.
fn is_nan(value: &Value) -> bool {
    value.as_f64().is_some_and(f64::is_nan)
}

/// `place operator constant`
fn against(place: &Place, operator: BinaryOperator, constant: &Value) -> Approximation {
    let bound = |low: Bound<Value>, high: Bound<Value>| range(place, low, high);
    let value = || constant.clone();
    match operator {
        _ if !constant.is_defined() => Approximation::exact(Filter::Nothing),
        BinaryOperator::NotEqual => place.loosely(Predicate::Defined),
        BinaryOperator::Equal => equals(place, constant),
        // Arrays, objects and NaN have no order.
        _ if !is_scalar(constant) => Approximation::exact(Filter::Nothing),
        BinaryOperator::Less => bound(Bound::Unbounded, Bound::Excluded(value())),
        BinaryOperator::LessOrEqual => bound(Bound::Unbounded, Bound::Included(value())),
        BinaryOperator::Greater => bound(Bound::Excluded(value()), Bound::Unbounded),
        BinaryOperator::GreaterOrEqual => bound(Bound::Included(value()), Bound::Unbounded),
        _ => Approximation::unknown(),
    }
}

fn equals(place: &Place, constant: &Value) -> Approximation {
    if is_nan(constant) || !constant.is_defined() {
        Approximation::exact(Filter::Nothing)
    } else if is_scalar(constant) {
        place.test(Predicate::Equals(constant.clone()))
    } else {
        place.loosely(Predicate::Defined)
    }
}

/// A range of one type; nothing when it is empty.
fn range(place: &Place, low: Bound<Value>, high: Bound<Value>) -> Approximation {
    let ends = |bound: &Bound<Value>| match bound {
        Bound::Included(value) | Bound::Excluded(value) => Some(value.clone()),
        Bound::Unbounded => None,
    };
    if let (Some(lowest), Some(highest)) = (ends(&low), ends(&high)) {
        let Some(order) = compare(&lowest, &highest) else { return Approximation::exact(Filter::Nothing) };
        let closed = matches!((&low, &high), (Bound::Included(_), Bound::Included(_)));
        if order.is_gt() || (order.is_eq() && !closed) {
            return Approximation::exact(Filter::Nothing);
        }
        if order.is_eq() {
            return place.test(Predicate::Equals(lowest));
        }
    }
    // There is only one null.
    match (&low, &high) {
        (Bound::Included(Value::Null), _) | (_, Bound::Included(Value::Null)) => {
            return place.test(Predicate::Equals(Value::Null));
        }
        (Bound::Excluded(Value::Null), _) | (_, Bound::Excluded(Value::Null)) => {
            return Approximation::exact(Filter::Nothing);
        }
        _ => {}
    }
    place.test(Predicate::Range { low, high })
}

/// BETWEEN two constants.
pub(super) fn within(place: &Place, low: &Value, high: &Value) -> Approximation {
    if !is_scalar(low) || !is_scalar(high) {
        return Approximation::exact(Filter::Nothing);
    }
    range(place, Bound::Included(low.clone()), Bound::Included(high.clone()))
}

/// NOT BETWEEN: one of the two comparisons is false, whatever the other is.
pub(super) fn outside(place: &Place, low: &Value, high: &Value) -> Approximation {
    let side = |constant: &Value, operator| match is_scalar(constant) {
        true => against(place, operator, constant),
        false => Approximation::exact(Filter::Nothing),
    };
    let (below, above) = (side(low, BinaryOperator::Less), side(high, BinaryOperator::Greater));
    Approximation { exact: below.exact && above.exact, filter: Filter::or([below.filter, above.filter]) }
}

/// IN a list of constants.
pub(super) fn one_of(place: &Place, constants: &[Value]) -> Approximation {
    let mut exact = true;
    let filters: Vec<Filter> = constants
        .iter()
        .map(|constant| {
            let found = equals(place, constant);
            exact &= found.exact;
            found.filter
        })
        .collect();
    Approximation { filter: Filter::or(filters), exact }
}
