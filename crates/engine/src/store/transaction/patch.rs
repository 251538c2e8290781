//! Patch operations on a document. Pure: a document and operations in, a document or an error out.

use std::sync::Arc;

use protocol::patch::{JsonPointer, PatchOperation};
use smol_str::SmolStr;
use sql::{Number, Value};

/// Applies all of `operations`, in order, or none.
pub fn apply(document: &Value, operations: &[PatchOperation<Value>]) -> Result<Value, String> {
    let mut patched = document.clone();
    for operation in operations {
        match operation {
            PatchOperation::Add { path, value } => put(&mut patched, path, value.clone(), Put::Insert)?,
            PatchOperation::Set { path, value } => put(&mut patched, path, value.clone(), Put::Overwrite)?,
            PatchOperation::Replace { path, value } => {
                *find(&mut patched, path.segments()).ok_or_else(|| missing(path))? = value.clone()
            }
            PatchOperation::Remove { path } => drop(take(&mut patched, path)?),
            PatchOperation::Increment { path, by } => increment(&mut patched, path, by)?,
            PatchOperation::Move { from, path } => {
                let value = take(&mut patched, from)?;
                put(&mut patched, path, value, Put::Overwrite)?;
            }
        }
    }
    Ok(patched)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Put {
    Insert,
    Overwrite,
}

fn missing(path: &JsonPointer) -> String {
    format!("the patch path '{}' does not exist in the item", path)
}

fn find<'a>(value: &'a mut Value, steps: &[String]) -> Option<&'a mut Value> {
    steps.iter().try_fold(value, |value, step| match value {
        Value::Object(members) => Arc::make_mut(members).get_mut(step),
        Value::Array(elements) => Arc::make_mut(elements).get_mut(index(step)?),
        _ => None,
    })
}

fn parent<'a, 'p>(
    document: &'a mut Value,
    path: &'p JsonPointer,
) -> Result<(&'a mut Value, &'p str), String> {
    let (last, steps) = path.segments().split_last().expect("a pointer has at least one step");
    find(document, steps).map(|parent| (parent, last.as_str())).ok_or_else(|| missing(path))
}

fn put(document: &mut Value, path: &JsonPointer, value: Value, how: Put) -> Result<(), String> {
    match parent(document, path)? {
        (Value::Object(members), name) => Arc::make_mut(members).set(SmolStr::new(name), value),
        (Value::Array(elements), step) => {
            let elements = Arc::make_mut(elements);
            let at = if step == "-" { Some(elements.len()) } else { index(step) };
            match at.filter(|at| *at <= elements.len()) {
                Some(at) if how == Put::Overwrite && at < elements.len() => elements[at] = value,
                Some(at) => elements.insert(at, value),
                None => return Err(format!("the patch path '{}' is outside the array", path)),
            }
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn take(document: &mut Value, path: &JsonPointer) -> Result<Value, String> {
    let applied = match parent(document, path)? {
        (Value::Object(members), name) => Arc::make_mut(members).remove(name),
        (Value::Array(elements), step) => {
            let elements = Arc::make_mut(elements);
            index(step).filter(|at| *at < elements.len()).map(|at| elements.remove(at))
        }
        _ => None,
    };
    applied.ok_or_else(|| missing(path))
}

fn increment(document: &mut Value, path: &JsonPointer, by: &Value) -> Result<(), String> {
    let Value::Number(by) = *by else { return Err(format!("'{path}' cannot be incremented by {by}")) };
    match find(document, path.segments()) {
        None => put(document, path, Value::Number(by), Put::Overwrite),
        Some(Value::Number(number)) => {
            let sum = sum(*number, by);
            if !sum.is_finite() {
                return Err(format!("incrementing '{path}' by {by} exceeds the largest number"));
            }
            *number = sum;
            Ok(())
        }
        Some(_) => Err(format!("the patch path '{}' holds no number to increment", path)),
    }
}

/// Integers stay integers, to the last of their 64 bits; all other numbers are doubles.
fn sum(left: Number, right: Number) -> Number {
    match (left, right) {
        (Number::Int(left), Number::Int(right)) => {
            left.checked_add(right).map_or_else(|| Number::from_f64(left as f64 + right as f64), Number::Int)
        }
        _ => Number::from_f64(left.as_f64() + right.as_f64()),
    }
}

/// An array position: digits without a leading zero.
fn index(step: &str) -> Option<usize> {
    let canonical = step == "0" || !step.starts_with('0');
    (canonical && step.bytes().all(|byte| byte.is_ascii_digit())).then(|| step.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use protocol::patch::PatchRequest;
    use serde_json::value::RawValue;

    use super::*;

    fn value(text: &str) -> Value {
        sql::value::parse(text.as_bytes()).unwrap()
    }

    /// `operation` is one of the wire, without its braces.
    #[track_caller]
    fn check(document: &str, operation: &str, expected: Result<&str, &str>) {
        let body = format!("[{{{operation}}}]");
        let patch = PatchRequest::parse(body.as_bytes()).expect("a patch");
        let read = |raw: &RawValue| sql::value::parse(raw.get().as_bytes());
        let operations: Vec<_> =
            patch.operations.into_iter().map(|operation| operation.try_map(read).unwrap()).collect();
        match (apply(&value(document), &operations), expected) {
            (Ok(patched), Ok(expected)) => assert_eq!(patched.to_string(), expected),
            (Err(reason), Err(fragment)) => assert!(reason.contains(fragment), "{reason}"),
            (result, expected) => panic!("{result:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn add_inserts_or_overwrites_members_and_shifts_elements() {
        for (document, path, expected) in [
            (r#"{"a":1}"#, "/b", Ok(r#"{"a":1,"b":9}"#)),
            (r#"{"a":1}"#, "/a", Ok(r#"{"a":9}"#)),
            (r#"{"a":[1,2]}"#, "/a/1", Ok(r#"{"a":[1,9,2]}"#)),
            (r#"{"a":[1,2]}"#, "/a/2", Ok(r#"{"a":[1,2,9]}"#)),
            (r#"{"a":[1,2]}"#, "/a/-", Ok(r#"{"a":[1,2,9]}"#)),
            (r#"{"a":[1,2]}"#, "/a/3", Err("outside the array")),
            (r#"{"a":1}"#, "/b/c", Err("does not exist")),
            (r#"{"a":1}"#, "/a/c", Err("does not exist")),
        ] {
            check(document, &format!(r#""op":"add","path":"{path}","value":9"#), expected);
        }
    }

    #[test]
    fn set_overwrites_an_element_instead_of_shifting() {
        check(r#"{"a":[1,2]}"#, r#""op":"set","path":"/a/1","value":9"#, Ok(r#"{"a":[1,9]}"#));
        check(r#"{"a":{}}"#, r#""op":"set","path":"/a/b","value":9"#, Ok(r#"{"a":{"b":9}}"#));
    }

    #[test]
    fn replace_and_remove_need_their_target() {
        check(r#"{"a":1}"#, r#""op":"replace","path":"/a","value":2"#, Ok(r#"{"a":2}"#));
        check(r#"{"a":1}"#, r#""op":"replace","path":"/b","value":2"#, Err("does not exist"));
        check(r#"{"a":[1,2,3]}"#, r#""op":"remove","path":"/a/0""#, Ok(r#"{"a":[2,3]}"#));
        check(r#"{"a":1}"#, r#""op":"remove","path":"/b""#, Err("does not exist"));
        check(r#"{"a/b":{"c~d":1}}"#, r#""op":"remove","path":"/a~1b/c~0d""#, Ok(r#"{"a/b":{}}"#));
    }

    #[test]
    fn increment_creates_adds_and_rejects_what_is_no_number() {
        check(r#"{}"#, r#""op":"incr","path":"/n","value":5"#, Ok(r#"{"n":5}"#));
        check(r#"{"n":1.5}"#, r#""op":"incr","path":"/n","value":5"#, Ok(r#"{"n":6.5}"#));
        let large = r#"{"n":9007199254740993}"#;
        check(large, r#""op":"incr","path":"/n","value":1"#, Ok(r#"{"n":9007199254740994}"#));
        check(r#"{"n":"x"}"#, r#""op":"incr","path":"/n","value":1"#, Err("no number"));
        for (number, by) in [("1.7e308", "1.7e308"), ("-1.7e308", "-1.7e308")] {
            let operation = format!(r#""op":"incr","path":"/n","value":{by}"#);
            check(&format!(r#"{{"n":{number}}}"#), &operation, Err("exceeds the largest number"));
        }
    }

    #[test]
    fn move_takes_and_puts() {
        let moved = r#""op":"move","from":"/a/b","path":"/c""#;
        check(r#"{"a":{"b":1},"c":2}"#, moved, Ok(r#"{"a":{},"c":1}"#));
        check(r#"{"a":1}"#, r#""op":"move","from":"/x","path":"/y""#, Err("does not exist"));
    }
}
