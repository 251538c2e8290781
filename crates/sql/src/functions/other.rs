//! Functions that belong to no other family.

use super::argument::whole;
use super::{Environment, Family, Function, at_least, between, exactly};
use crate::value::{SmolStr, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    at_least("CHOOSE", 2, Family::Other, choose),
    exactly("DOCUMENTID", 1, Family::Other, document_id),
    between("OBJECTTOARRAY", (1, 3), Family::Other, object_to_array),
];

/// `CHOOSE(i, x1, …)`: counts from 1.
fn choose(args: &[Value], _: &Environment<'_>) -> Value {
    let Some((index, choices)) = args.split_first() else { return Value::Undefined };
    whole(index)
        .and_then(|index| usize::try_from(index).ok()?.checked_sub(1))
        .and_then(|at| choices.get(at).cloned())
        .unwrap_or_default()
}

/// `OBJECTTOARRAY(o[, nameOfName[, nameOfValue]])`: one element for each member.
fn object_to_array(args: &[Value], _: &Environment<'_>) -> Value {
    let Some((Value::Object(members), names)) = args.split_first() else { return Value::Undefined };
    let name = |at: usize, default: &'static str| match names.get(at) {
        None => Some(SmolStr::new_static(default)),
        Some(Value::String(name)) => Some(name.clone()),
        Some(_) => None,
    };
    let (Some(key), Some(value)) = (name(0, "k"), name(1, "v")) else { return Value::Undefined };
    Value::array(members.iter().map(|(name, member)| {
        Value::object([(key.clone(), Value::String(name.clone())), (value.clone(), member.clone())])
    }))
}

/// `DOCUMENTID(item)`: the item's number in its partition, which its `_rid` carries.
fn document_id(args: &[Value], _: &Environment<'_>) -> Value {
    let ordinal = args.first().and_then(|item| item.member("_rid").as_str()).and_then(ordinal_of);
    ordinal.map_or(Value::Undefined, Value::from)
}

/// Bytes 8 to 15 of the identifier, little-endian.
fn ordinal_of(rid: &str) -> Option<i64> {
    const RID_CHARACTERS: usize = 24;
    let characters = rid.as_bytes().get(..RID_CHARACTERS)?;
    let mut bytes = [0; 18];
    for (group, out) in characters.chunks_exact(4).zip(bytes.chunks_exact_mut(3)) {
        let mut bits = 0;
        for &character in group {
            bits = bits << 6 | u32::from(sextet(character)?);
        }
        out.copy_from_slice(&bits.to_be_bytes()[1..]);
    }
    let ordinal = bytes[8..16].try_into().ok()?;
    Some(i64::from_le_bytes(ordinal))
}

/// The six bits of one character of base64 with `-` for `/`.
fn sextet(character: u8) -> Option<u8> {
    match character {
        b'A'..=b'Z' => Some(character - b'A'),
        b'a'..=b'z' => Some(character - b'a' + 26),
        b'0'..=b'9' => Some(character - b'0' + 52),
        b'+' => Some(62),
        b'-' | b'/' => Some(63),
        b'=' => Some(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn choices_count_from_one() {
        check(&[
            ("CHOOSE", "1 ; \"a\" ; \"b\"", "\"a\""),
            ("CHOOSE", "2 ; \"a\" ; \"b\"", "\"b\""),
            ("CHOOSE", "0 ; \"a\"", "u"),
            ("CHOOSE", "3 ; \"a\" ; \"b\"", "u"),
            ("CHOOSE", "-1 ; \"a\"", "u"),
            ("CHOOSE", "1.5 ; \"a\"", "u"),
            ("CHOOSE", "\"1\" ; \"a\"", "u"),
            ("CHOOSE", "1 ; u ; \"b\"", "u"),
            ("CHOOSE", "2 ; u ; \"b\"", "\"b\""),
        ]);
    }

    #[test]
    fn objects_become_arrays_of_names_and_values() {
        check(&[
            ("OBJECTTOARRAY", r#"{"a":"12345","b":1}"#, r#"[{"k":"a","v":"12345"},{"k":"b","v":1}]"#),
            ("OBJECTTOARRAY", r#"{"a":1} ; "name""#, r#"[{"name":"a","v":1}]"#),
            ("OBJECTTOARRAY", r#"{"a":1} ; "name" ; "value""#, r#"[{"name":"a","value":1}]"#),
            ("OBJECTTOARRAY", "{}", "[]"),
            ("OBJECTTOARRAY", r#"{"a":1} ; 1"#, "u"),
            ("OBJECTTOARRAY", "[]", "u"),
        ]);
    }

    #[test]
    fn the_ordinal_comes_from_the_rid() {
        check(&[
            ("DOCUMENTID", r#"{"_rid":"36ZyAPW+uN8NAAAAAAAAAA=="}"#, "13"),
            // 8 bytes of FF, then 0x0102 little-endian: the last character of the prefix is `-`.
            ("DOCUMENTID", r#"{"_rid":"----------8CAQAAAAAAAA=="}"#, "258"),
            ("DOCUMENTID", r#"{"_rid":"36ZyAA=="}"#, "u"),
            ("DOCUMENTID", r#"{"_rid":"36ZyAPW*uN8NAAAAAAAAAA=="}"#, "u"),
            ("DOCUMENTID", r#"{"_rid":1}"#, "u"),
            ("DOCUMENTID", "{}", "u"),
            ("DOCUMENTID", "1", "u"),
        ]);
    }
}
