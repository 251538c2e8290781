//! Reading of function arguments, and limits on results.

use smol_str::SmolStr;

use crate::value::{Value, ValueKind};

/// The longest string that a function returns, in bytes: twice the largest item. It stops queries that
/// double a string repeatedly.
pub(crate) const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The longest array that a function returns.
pub(super) const ELEMENTS_MAX: usize = 1_000_000;

/// A whole number, clamped to 64 bits; `None` for fractions, infinities and values that are not numbers.
pub(super) fn whole(value: &Value) -> Option<i64> {
    match value.as_i64() {
        Some(number) => Some(number),
        // A cast of a double saturates.
        None => value.as_f64().filter(|number| number.fract() == 0.0).map(|number| number as i64),
    }
}

/// An optional boolean argument: `default` if absent, `None` if it is not a boolean.
pub(super) fn optional_bool(args: &[Value], at: usize, default: bool) -> Option<bool> {
    match args.get(at) {
        None => Some(default),
        Some(value) => value.as_bool(),
    }
}

/// The arguments as exactly two strings.
pub(super) fn two_strings(args: &[Value]) -> Option<(&str, &str)> {
    match args {
        [Value::String(first), Value::String(second)] => Some((first, second)),
        _ => None,
    }
}

/// The first two arguments as strings; more may follow.
pub(super) fn leading_strings(args: &[Value]) -> Option<(&SmolStr, &SmolStr)> {
    match args {
        [Value::String(first), Value::String(second), ..] => Some((first, second)),
        _ => None,
    }
}

/// The arguments as exactly two arrays.
pub(super) fn two_arrays(args: &[Value]) -> Option<(&[Value], &[Value])> {
    match args {
        [Value::Array(first), Value::Array(second)] => Some((first, second)),
        _ => None,
    }
}

/// The result, or undefined for `None`.
pub(super) fn or_undefined<T: Into<Value>>(result: Option<T>) -> Value {
    result.map_or(Value::Undefined, Into::into)
}

/// Whether the JSON text of `value` is certainly at most `bytes` long. Stops as early as possible, because
/// a small value can share its parts millions of times.
pub(crate) fn fits_as_json(value: &Value, bytes: usize) -> bool {
    let mut left = bytes;
    spend(value, &mut left)
}

fn spend(value: &Value, left: &mut usize) -> bool {
    // The longest scalar other than a string; an escaped character takes six bytes.
    const SCALAR: usize = 32;
    const ESCAPED: usize = 6;
    let own = match value {
        Value::String(text) => SCALAR + ESCAPED * text.len(),
        _ => SCALAR,
    };
    let Some(rest) = left.checked_sub(own) else { return false };
    *left = rest;
    match value.kind() {
        ValueKind::Array => {
            value.as_array().is_some_and(|elements| elements.iter().all(|each| spend(each, left)))
        }
        ValueKind::Object => value.as_object().is_some_and(|members| {
            members.iter().all(|(name, member)| {
                *left = left.saturating_sub(ESCAPED * name.len());
                spend(member, left)
            })
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_saturate_at_the_ends_of_their_range() {
        for (value, expected) in [
            (Value::from(7), Some(7)),
            (Value::from(7.0), Some(7)),
            (Value::from(7.5), None),
            (Value::from(1e300), Some(i64::MAX)),
            (Value::from(-1e300), Some(i64::MIN)),
            (Value::from(f64::INFINITY), None),
            (Value::from(f64::NAN), None),
            (Value::from("7"), None),
        ] {
            assert_eq!(whole(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_value_that_shares_its_parts_is_measured_as_it_would_be_written() {
        let mut value = Value::from("part");
        for _ in 0..40 {
            value = Value::array([value.clone(), value]);
        }
        assert!(!fits_as_json(&value, TEXT_BYTES_MAX));
        assert!(fits_as_json(&Value::array([Value::from(1), Value::from("a")]), TEXT_BYTES_MAX));
    }
}
