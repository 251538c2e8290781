//! Comparisons with constants as predicates.

use std::ops::Bound;

use super::analyze::{Approximation, BoundPath, BoundPaths, defined, path_of, when};
use super::{Filter, Predicate};
use crate::ast::BinaryOperator;
use crate::bound::BoundExpression;
use crate::value::{Value, ValueKind, compare};

/// The documents for which `left operator right` is exactly `wanted`.
pub(super) fn comparison(
    operator: BinaryOperator,
    (left, right): (&BoundExpression, &BoundExpression),
    wanted: bool,
    frame_paths: &BoundPaths,
) -> Approximation {
    let operator = if wanted { operator } else { opposite(operator) };
    let Some(operator) = is_comparison(operator).then_some(operator) else { return Approximation::unknown() };
    match (path_of(left, frame_paths), right, left, path_of(right, frame_paths)) {
        (Some(target), BoundExpression::Constant(constant), ..) => against(&target, operator, constant),
        (.., BoundExpression::Constant(constant), Some(target)) => {
            against(&target, mirrored(operator), constant)
        }
        // `condition = true` is equivalent to the condition.
        (None, BoundExpression::Constant(Value::Bool(value)), ..) if operator == BinaryOperator::Equal => {
            when(left, *value, frame_paths)
        }
        (.., BoundExpression::Constant(Value::Bool(value)), None) if operator == BinaryOperator::Equal => {
            when(right, *value, frame_paths)
        }
        // Both sides must be defined to be compared.
        _ => defined(&[left, right], frame_paths),
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

/// The comparison that is true exactly where this one is false; both are undefined for the same operands.
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

/// Whether the value is NaN, which equals and precedes nothing.
fn is_nan(value: &Value) -> bool {
    value.as_f64().is_some_and(f64::is_nan)
}

/// The filter of `path operator constant`.
fn against(target: &BoundPath, operator: BinaryOperator, constant: &Value) -> Approximation {
    let bound = |low: Bound<Value>, high: Bound<Value>| range(target, low, high);
    let value = || constant.clone();
    match operator {
        _ if !constant.is_defined() => Approximation::exact(Filter::Nothing),
        BinaryOperator::NotEqual => target.test_loosely(Predicate::Defined),
        BinaryOperator::Equal => equals(target, constant),
        // Arrays, objects and NaN have no order.
        _ if !is_scalar(constant) => Approximation::exact(Filter::Nothing),
        BinaryOperator::Less => bound(Bound::Unbounded, Bound::Excluded(value())),
        BinaryOperator::LessOrEqual => bound(Bound::Unbounded, Bound::Included(value())),
        BinaryOperator::Greater => bound(Bound::Excluded(value()), Bound::Unbounded),
        BinaryOperator::GreaterOrEqual => bound(Bound::Included(value()), Bound::Unbounded),
        _ => Approximation::unknown(),
    }
}

fn equals(target: &BoundPath, constant: &Value) -> Approximation {
    if is_nan(constant) || !constant.is_defined() {
        Approximation::exact(Filter::Nothing)
    } else if is_scalar(constant) {
        target.test(Predicate::Equals(constant.clone()))
    } else {
        target.test_loosely(Predicate::Defined)
    }
}

/// The filter of a range within one type; accepts nothing if the range is empty.
fn range(target: &BoundPath, low: Bound<Value>, high: Bound<Value>) -> Approximation {
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
            return target.test(Predicate::Equals(lowest));
        }
    }
    // There is only one null.
    match (&low, &high) {
        (Bound::Included(Value::Null), _) | (_, Bound::Included(Value::Null)) => {
            return target.test(Predicate::Equals(Value::Null));
        }
        (Bound::Excluded(Value::Null), _) | (_, Bound::Excluded(Value::Null)) => {
            return Approximation::exact(Filter::Nothing);
        }
        _ => {}
    }
    target.test(Predicate::Range { low, high })
}

/// The filter of BETWEEN with two constants.
pub(super) fn within(target: &BoundPath, low: &Value, high: &Value) -> Approximation {
    if !is_scalar(low) || !is_scalar(high) {
        return Approximation::exact(Filter::Nothing);
    }
    range(target, Bound::Included(low.clone()), Bound::Included(high.clone()))
}

/// The filter of NOT BETWEEN: one of the two comparisons is false, whatever the other is.
pub(super) fn outside(target: &BoundPath, low: &Value, high: &Value) -> Approximation {
    let side = |constant: &Value, operator| match is_scalar(constant) {
        true => against(target, operator, constant),
        false => Approximation::exact(Filter::Nothing),
    };
    let (below, above) = (side(low, BinaryOperator::Less), side(high, BinaryOperator::Greater));
    Approximation { exact: below.exact && above.exact, filter: Filter::or([below.filter, above.filter]) }
}

/// The filter of IN with a list of constants.
pub(super) fn one_of(target: &BoundPath, constants: &[Value]) -> Approximation {
    let mut exact = true;
    let filters: Vec<Filter> = constants
        .iter()
        .map(|constant| {
            let found = equals(target, constant);
            exact &= found.exact;
            found.filter
        })
        .collect();
    Approximation { filter: Filter::or(filters), exact }
}
