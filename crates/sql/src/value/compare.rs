//! Equality and order of values.

use std::cmp::Ordering;

use super::distinct_hash::distinct_hash;
use super::{Value, ValueKind};

/// Structural equality: numbers by value, property order ignored. Undefined equals only itself; the
/// operator `=`, which is undefined for an undefined operand, is implemented by the evaluator.
pub fn deep_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Undefined, Value::Undefined) | (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right.iter()).all(|(l, r)| deep_equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, value)| right.get(name).is_some_and(|other| deep_equal(value, other)))
        }
        _ => false,
    }
}

/// The ordering of `<` and the other comparison operators: `None` across types, and for arrays, objects and
/// undefined.
pub fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Value::String(left), Value::String(right)) => Some(compare_strings(left, right)),
        _ => None,
    }
}

/// The ordering of ORDER BY: by type, then within the type. It is total, so that sorting is deterministic:
/// arrays and objects have no order of their own and sort by their [distinct hash](distinct_hash).
pub fn total_order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            let (left, right) = (left.as_f64(), right.as_f64());
            left.partial_cmp(&right).unwrap_or_else(|| left.total_cmp(&right))
        }
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            distinct_hash(left).cmp(&distinct_hash(right))
        }
        _ => {
            let kinds: (ValueKind, ValueKind) = (left.kind(), right.kind());
            kinds.0.cmp(&kinds.1).then_with(|| compare(left, right).unwrap_or(Ordering::Equal))
        }
    }
}

/// The ordering of strings by UTF-16 code unit, as in the service.
pub fn compare_strings(left: &str, right: &str) -> Ordering {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    match left.iter().zip(right).position(|(l, r)| l != r) {
        Some(at) => utf16_rank(left[at]).cmp(&utf16_rank(right[at])),
        None => left.len().cmp(&right.len()),
    }
}

/// The rank of a byte such that UTF-8 sorts like UTF-16: U+E000 to U+FFFF (lead bytes EE and EF) come after
/// the supplementary planes (lead bytes F0 to F4), whose surrogates are D800 to DFFF.
pub(super) fn utf16_rank(byte: u8) -> u8 {
    match byte {
        0xEE => 0xF5,
        0xEF => 0xF6,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse;

    #[test]
    fn strings_order_by_utf16_code_unit() {
        let mut texts = ["\u{FFFD}", "😀", "z", "", "\u{E000}", "é", "za"];
        texts.sort_by(|a, b| compare_strings(a, b));
        let mut expected = texts;
        expected.sort_by_key(|text| text.encode_utf16().collect::<Vec<_>>());
        assert_eq!(texts, expected);
    }

    #[test]
    fn types_order_from_undefined_to_object() {
        let ascending = ["null", "false", "true", "-1", "2.5", r#""""#, r#""a""#, "[1]", r#"{"a":1}"#];
        let values: Vec<Value> = std::iter::once(Value::Undefined)
            .chain(ascending.iter().map(|text| parse(text.as_bytes()).unwrap()))
            .collect();
        for pair in values.windows(2) {
            assert_eq!(total_order(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        }
    }

    #[test]
    fn arrays_and_objects_order_by_their_hash() {
        let value = |text: &str| parse(text.as_bytes()).unwrap();
        assert_eq!(total_order(&value("[1,2]"), &value("[]")), Ordering::Less);
        assert_eq!(total_order(&value("{}"), &value(r#"{"a":1}"#)), Ordering::Less);
        let same = total_order(&value(r#"{"a":1,"b":2}"#), &value(r#"{"b":2.0,"a":1}"#));
        assert_eq!(same, Ordering::Equal);
    }

    #[test]
    fn equality_is_deep_and_ignores_member_order() {
        let left = parse(br#"{"a":1,"b":[1,{"c":null}]}"#).unwrap();
        let right = parse(br#"{"b":[1.0,{"c":null}],"a":1.0}"#).unwrap();
        assert!(deep_equal(&left, &right));
        assert!(!deep_equal(&left, &parse(br#"{"a":1}"#).unwrap()));
    }
}
