//! Function calls that an index can evaluate.

use super::analyze::{Approximation, BoundPath, BoundPaths, defined, path_of};
use super::refine::one_of;
use super::{Filter, Predicate};
use crate::bound::BoundExpression;
use crate::value::{Value, ValueKind};

/// The documents for which a call is exactly `wanted`.
pub(super) fn when(
    name: &str,
    arguments: &[BoundExpression],
    wanted: bool,
    frame_paths: &BoundPaths,
) -> Approximation {
    let target = arguments.first().and_then(|argument| path_of(argument, frame_paths));
    match name {
        "IS_DEFINED" | "IS_NULL" | "IS_BOOL" | "IS_NUMBER" | "IS_STRING" | "IS_ARRAY" | "IS_OBJECT"
        | "IS_PRIMITIVE" | "IS_INTEGER" | "IS_FINITE_NUMBER" | "IS_DATETIME" => match target {
            Some(target) if wanted => type_check(name, &target),
            // Undefined fails every type check, so a failed check gives no information.
            _ => Approximation::unknown(),
        },
        "STARTSWITH" | "STRINGEQUALS" | "ENDSWITH" | "CONTAINS" | "REGEXMATCH" => match target {
            Some(target) => text(name, &target, arguments, wanted),
            None => defined(&arguments.iter().take(2).collect::<Vec<_>>(), frame_paths),
        },
        "ARRAY_CONTAINS" => array_contains(arguments, wanted, frame_paths),
        "ARRAY_CONTAINS_ANY" | "ARRAY_CONTAINS_ALL" if wanted => match target {
            Some(target) => array_contains_several(&target, &arguments[1..], name == "ARRAY_CONTAINS_ALL"),
            None => Approximation::unknown(),
        },
        _ => Approximation::unknown(),
    }
}

fn type_check(name: &str, target: &BoundPath) -> Approximation {
    match name {
        "IS_DEFINED" => target.test(Predicate::Defined),
        "IS_NULL" => target.test(Predicate::Equals(Value::Null)),
        "IS_BOOL" => target.test(Predicate::of_kind(ValueKind::Bool)),
        "IS_NUMBER" => target.test(Predicate::of_kind(ValueKind::Number)),
        "IS_STRING" => target.test(Predicate::of_kind(ValueKind::String)),
        "IS_INTEGER" | "IS_FINITE_NUMBER" => target.test_loosely(Predicate::of_kind(ValueKind::Number)),
        "IS_DATETIME" => target.test_loosely(Predicate::of_kind(ValueKind::String)),
        _ => target.test_loosely(Predicate::Defined),
    }
}

/// String functions with a constant argument, such as STARTSWITH, possibly ignoring case.
fn text(name: &str, target: &BoundPath, arguments: &[BoundExpression], wanted: bool) -> Approximation {
    let any_string = || target.test_loosely(Predicate::of_kind(ValueKind::String));
    let exact_case = match arguments.get(2) {
        None => true,
        Some(BoundExpression::Constant(Value::Bool(ignore_case))) => !ignore_case,
        Some(_) => false,
    };
    match (arguments.get(1), name) {
        (Some(BoundExpression::Constant(Value::String(prefix))), "STARTSWITH") if wanted && exact_case => {
            target.test(Predicate::Prefix(prefix.clone()))
        }
        (Some(BoundExpression::Constant(Value::String(text))), "STRINGEQUALS") if wanted && exact_case => {
            target.test(Predicate::Equals(Value::String(text.clone())))
        }
        (Some(BoundExpression::Constant(Value::String(_))), _) => any_string(),
        // With other types the result is neither true nor false.
        (Some(BoundExpression::Constant(_)), _) => Approximation::exact(Filter::Nothing),
        _ => any_string(),
    }
}

/// `ARRAY_CONTAINS(c.tags, 'x')` and `ARRAY_CONTAINS(['a', 'b'], c.x)` as filters.
fn array_contains(arguments: &[BoundExpression], wanted: bool, frame_paths: &BoundPaths) -> Approximation {
    let [array, needle, partial @ ..] = arguments else { return Approximation::unknown() };
    let whole = matches!(partial, [] | [BoundExpression::Constant(Value::Bool(false))]);
    match (path_of(array, frame_paths), needle, array, path_of(needle, frame_paths)) {
        (Some(target), BoundExpression::Constant(needle), ..) if wanted => {
            let found = one_of(&target.element(), std::slice::from_ref(needle));
            if whole { found } else { target.element().test_loosely(Predicate::Defined) }
        }
        (Some(target), ..) => {
            if wanted {
                target.element().test_loosely(Predicate::Defined)
            } else {
                target.test_loosely(Predicate::Defined)
            }
        }
        (.., BoundExpression::Constant(Value::Array(elements)), Some(target)) => {
            if wanted && whole {
                one_of(&target, elements)
            } else {
                target.test_loosely(Predicate::Defined)
            }
        }
        _ => Approximation::unknown(),
    }
}

/// `ARRAY_CONTAINS_ANY(c.tags, 'x', 'y')` and `ARRAY_CONTAINS_ALL` as filters.
fn array_contains_several(target: &BoundPath, needles: &[BoundExpression], all: bool) -> Approximation {
    let element = target.element();
    let mut exact = true;
    let filters: Vec<Filter> = needles
        .iter()
        .map(|needle| match needle {
            BoundExpression::Constant(needle) => {
                let found = one_of(&element, std::slice::from_ref(needle));
                exact &= found.exact;
                found.filter
            }
            _ => {
                exact = false;
                Filter::predicate(element.path.clone(), Predicate::Defined)
            }
        })
        .collect();
    // The function decides special cases such as an array of arrays or no needles; the predicates are
    // necessary conditions in all of them.
    let filter = if all { Filter::and(filters) } else { Filter::or(filters) };
    Approximation { filter, exact: exact && !needles.is_empty() }
}
