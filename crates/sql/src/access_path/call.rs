//! Functions an index can answer for.

use super::analyze::{Approximation, Place, Places, defined, place_of};
use super::refine::one_of;
use super::{Filter, Predicate};
use crate::bound::Code;
use crate::value::{Value, ValueKind};

/// For which documents a call is exactly `wanted`.
pub(super) fn when(name: &str, arguments: &[Code], wanted: bool, places: &Places) -> Approximation {
    let place = arguments.first().and_then(|argument| place_of(argument, places));
    match name {
        "IS_DEFINED" | "IS_NULL" | "IS_BOOL" | "IS_NUMBER" | "IS_STRING" | "IS_ARRAY" | "IS_OBJECT"
        | "IS_PRIMITIVE" | "IS_INTEGER" | "IS_FINITE_NUMBER" | "IS_DATETIME" => match place {
            Some(place) if wanted => type_check(name, &place),
            // Undefined fails every type check, so nothing is known about a document that does.
            _ => Approximation::unknown(),
        },
        "STARTSWITH" | "STRINGEQUALS" | "ENDSWITH" | "CONTAINS" | "REGEXMATCH" => match place {
            Some(place) => text(name, &place, arguments, wanted),
            None => defined(&arguments.iter().take(2).collect::<Vec<_>>(), places),
        },
        "ARRAY_CONTAINS" => array_contains(arguments, wanted, places),
        "ARRAY_CONTAINS_ANY" | "ARRAY_CONTAINS_ALL" if wanted => match place {
            Some(place) => several(&place, &arguments[1..], name == "ARRAY_CONTAINS_ALL"),
            None => Approximation::unknown(),
        },
        _ => Approximation::unknown(),
    }
}

fn type_check(name: &str, place: &Place) -> Approximation {
    match name {
        "IS_DEFINED" => place.test(Predicate::Defined),
        "IS_NULL" => place.test(Predicate::Equals(Value::Null)),
        "IS_BOOL" => place.test(Predicate::of_kind(ValueKind::Bool)),
        "IS_NUMBER" => place.test(Predicate::of_kind(ValueKind::Number)),
        "IS_STRING" => place.test(Predicate::of_kind(ValueKind::String)),
        "IS_INTEGER" | "IS_FINITE_NUMBER" => place.loosely(Predicate::of_kind(ValueKind::Number)),
        "IS_DATETIME" => place.loosely(Predicate::of_kind(ValueKind::String)),
        _ => place.loosely(Predicate::Defined),
    }
}

/// Functions of a string and another one, perhaps ignoring case.
fn text(name: &str, place: &Place, arguments: &[Code], wanted: bool) -> Approximation {
    let any_string = || place.loosely(Predicate::of_kind(ValueKind::String));
    let exact_case = match arguments.get(2) {
        None => true,
        Some(Code::Constant(Value::Bool(ignore_case))) => !ignore_case,
        Some(_) => false,
    };
    match (arguments.get(1), name) {
        (Some(Code::Constant(Value::String(prefix))), "STARTSWITH") if wanted && exact_case => {
            place.test(Predicate::Prefix(prefix.clone()))
        }
        (Some(Code::Constant(Value::String(text))), "STRINGEQUALS") if wanted && exact_case => {
            place.test(Predicate::Equals(Value::String(text.clone())))
        }
        (Some(Code::Constant(Value::String(_))), _) => any_string(),
        // Neither true nor false with anything else.
        (Some(Code::Constant(_)), _) => Approximation::exact(Filter::Nothing),
        _ => any_string(),
    }
}

/// `ARRAY_CONTAINS(c.tags, 'x')` and `ARRAY_CONTAINS(['a', 'b'], c.x)`
fn array_contains(arguments: &[Code], wanted: bool, places: &Places) -> Approximation {
    let [array, needle, partial @ ..] = arguments else { return Approximation::unknown() };
    let whole = matches!(partial, [] | [Code::Constant(Value::Bool(false))]);
    match (place_of(array, places), needle, array, place_of(needle, places)) {
        (Some(place), Code::Constant(needle), ..) if wanted => {
            let found = one_of(&place.element(), std::slice::from_ref(needle));
            if whole { found } else { place.element().loosely(Predicate::Defined) }
        }
        (Some(place), ..) => {
            if wanted {
                place.element().loosely(Predicate::Defined)
            } else {
                place.loosely(Predicate::Defined)
            }
        }
        (.., Code::Constant(Value::Array(elements)), Some(place)) => {
            if wanted && whole {
                one_of(&place, elements)
            } else {
                place.loosely(Predicate::Defined)
            }
        }
        _ => Approximation::unknown(),
    }
}

/// `ARRAY_CONTAINS_ANY(c.tags, 'x', 'y')` and its sibling for all of them.
fn several(place: &Place, needles: &[Code], all: bool) -> Approximation {
    let element = place.element();
    let mut exact = true;
    let filters: Vec<Filter> = needles
        .iter()
        .map(|needle| match needle {
            Code::Constant(needle) => {
                let found = one_of(&element, std::slice::from_ref(needle));
                exact &= found.exact;
                found.filter
            }
            _ => {
                exact = false;
                Filter::test(element.path.clone(), Predicate::Defined)
            }
        })
        .collect();
    // What counts as contained is the function's to say: an array of arrays, an empty list of
    // needles. The tests are necessary either way.
    let filter = if all { Filter::and(filters) } else { Filter::or(filters) };
    Approximation { filter, exact: exact && !needles.is_empty() }
}
