//! Functions that belong to no other family.

use protocol::resource_id::ItemRid;

use super::argument::{or_undefined, whole};
use super::{Family, Function, FunctionContext, at_least, between, exactly};
use crate::value::{SmolStr, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    at_least("CHOOSE", 2, Family::Other, choose),
    exactly("DOCUMENTID", 1, Family::Other, document_id),
    between("OBJECTTOARRAY", (1, 3), Family::Other, object_to_array),
];

/// `CHOOSE(i, x1, …)`: the i-th value, counted from 1.
fn choose(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let Some((index, choices)) = args.split_first() else { return Value::Undefined };
    whole(index)
        .and_then(|index| usize::try_from(index).ok()?.checked_sub(1))
        .and_then(|at| choices.get(at).cloned())
        .unwrap_or_default()
}

/// `OBJECTTOARRAY(o[, nameOfName[, nameOfValue]])`: one element for each property.
fn object_to_array(args: &[Value], _: &FunctionContext<'_>) -> Value {
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

/// `DOCUMENTID(item)`: the ordinal of the item in its container, which is part of its `_rid`.
fn document_id(args: &[Value], _: &FunctionContext<'_>) -> Value {
    let rid = args.first().and_then(|item| item.member("_rid").as_str());
    let ordinal = rid.and_then(|rid| rid.parse::<ItemRid>().ok()).map(|rid| rid.ordinal);
    or_undefined(ordinal.and_then(|ordinal| i64::try_from(ordinal).ok()))
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
