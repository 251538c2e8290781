//! Order keys: values as bytes that sort like ORDER BY, for index entries and for sort positions in
//! results.

use super::compare::utf16_rank;
use super::distinct_hash::distinct_hash;
use super::{Value, ValueKind};

/// The bytes of a string that are part of its key; longer strings share the key of their prefix.
pub const ORDER_KEY_STRING_MAX: usize = 256;

/// Whether values with the same key are certainly equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKeyPrecision {
    /// The key contains the whole value.
    Exact,
    /// The key contains only the prefix of a long string.
    Prefix,
}

/// Appends the key of a scalar. Keys are prefix-free: no key is the beginning of another, so that
/// keys can be concatenated. Returns `None`, and appends nothing, for undefined, arrays and objects.
///
/// Layout: the type's rank, then 8 bytes for a number (sign-flipped big-endian double), or for a
/// string its bytes with 00 escaped as 00 FF, ended by 00 00 when whole and by FF when cut.
pub fn encode_order_key(value: &Value, out: &mut Vec<u8>) -> Option<OrderKeyPrecision> {
    match value {
        Value::Undefined | Value::Array(_) | Value::Object(_) => return None,
        Value::Null => out.push(ValueKind::Null as u8),
        Value::Bool(value) => out.extend([ValueKind::Bool as u8, u8::from(*value)]),
        Value::Number(number) => {
            out.push(ValueKind::Number as u8);
            // Adding zero turns -0 into 0: they are equal in SQL.
            let bits = (number.as_f64() + 0.0).to_bits();
            let ordered = if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits };
            out.extend(ordered.to_be_bytes());
        }
        Value::String(text) => {
            out.push(ValueKind::String as u8);
            let cut = text.len() > ORDER_KEY_STRING_MAX;
            escape(&text.as_bytes()[..text.len().min(ORDER_KEY_STRING_MAX)], out);
            if cut {
                out.push(0xFF);
                return Some(OrderKeyPrecision::Prefix);
            }
            out.extend([0, 0]);
        }
    }
    Some(OrderKeyPrecision::Exact)
}

/// Appends the key of any whole value, undefined included. Keys are prefix-free, and equal to those of
/// [`encode_order_key`] where those are exact.
///
/// Layout of arrays and objects: that of [`encode_hash_order_key`].
pub fn encode_whole_order_key(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Undefined => out.push(ValueKind::Undefined as u8),
        Value::String(text) => {
            out.push(ValueKind::String as u8);
            escape(text.as_bytes(), out);
            out.extend([0, 0]);
        }
        Value::Array(_) | Value::Object(_) => {
            encode_hash_order_key(value.kind(), distinct_hash(value), out);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            encode_order_key(value, out);
        }
    }
}

/// Appends the key of an array or object of which only the [distinct hash](distinct_hash) is known: the type's
/// rank, then the 16 bytes of the hash.
pub fn encode_hash_order_key(kind: ValueKind, hash: u128, out: &mut Vec<u8>) {
    out.push(kind as u8);
    out.extend_from_slice(&hash.to_be_bytes());
}

/// Appends a string with its escapes. Nearly every string is copied as it is.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    if text.iter().all(|byte| *byte != 0 && *byte < 0xEE) {
        out.extend_from_slice(text);
        return;
    }
    for &byte in text {
        out.push(utf16_rank(byte));
        if byte == 0 {
            out.push(0xFF);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{parse, total_order};
    use proptest::prelude::*;

    fn scalar() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(|n| Value::from(i64::from(n))),
            any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::from),
            ".{0,8}".prop_map(|s| Value::string(&s)),
            prop::collection::vec(prop_oneof![Just('\0'), Just('\u{FFFD}'), Just('😀'), Just('a')], 0..4)
                .prop_map(|s| Value::string(s.into_iter().collect::<String>())),
        ]
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![scalar(), Just(Value::Undefined), Just(Value::string("a".repeat(300)))];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::array),
                prop::collection::btree_map("[ab\0]{0,2}", inner, 0..3).prop_map(|members| Value::object(
                    members.into_iter().map(|(name, value)| (name.into(), value))
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn whole_keys_order_as_their_values_do(left in value(), right in value()) {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            encode_whole_order_key(&left, &mut a);
            encode_whole_order_key(&right, &mut b);
            prop_assert_eq!(a.cmp(&b), total_order(&left, &right));
            prop_assert!(a == b || !a.starts_with(&b), "no key begins another");
            let mut short = Vec::new();
            if encode_order_key(&left, &mut short) == Some(OrderKeyPrecision::Exact) {
                prop_assert_eq!(a, short);
            }
        }

        #[test]
        fn keys_order_as_their_values_do(left in scalar(), right in scalar()) {
            let (mut a, mut b) = (Vec::new(), Vec::new());
            encode_order_key(&left, &mut a);
            encode_order_key(&right, &mut b);
            prop_assert_eq!(a.cmp(&b), total_order(&left, &right));
        }
    }

    #[test]
    fn long_strings_sort_by_their_prefix_and_are_not_exact() {
        let long = Value::string("a".repeat(ORDER_KEY_STRING_MAX + 1));
        let mut key = Vec::new();
        assert_eq!(encode_order_key(&long, &mut key), Some(OrderKeyPrecision::Prefix));
        let whole = Value::string("a".repeat(ORDER_KEY_STRING_MAX));
        let mut whole_key = Vec::new();
        assert_eq!(encode_order_key(&whole, &mut whole_key), Some(OrderKeyPrecision::Exact));
        assert!(whole_key < key);
    }

    #[test]
    fn arrays_objects_and_undefined_have_no_key() {
        for text in ["[]", "{}"] {
            assert_eq!(encode_order_key(&parse(text.as_bytes()).unwrap(), &mut Vec::new()), None);
        }
        assert_eq!(encode_order_key(&Value::Undefined, &mut Vec::new()), None);
    }
}
