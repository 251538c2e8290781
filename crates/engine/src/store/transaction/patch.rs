//! Patch operations on a document. Pure: a document and operations in, a document or an error out.

use std::sync::Arc;

use protocol::patch::{JsonPointer, PatchOperation};
use smol_str::SmolStr;
use sql::{Number, Value};

/// Applies all of `operations`, in order, or none.
pub fn apply(document: &Value, operations: &[PatchOperation<Value>]) -> Result<Value, String> {
    let mut patched = document.clone();
    for (index, operation) in operations.iter().enumerate() {
        apply_one(&mut patched, operation)
            .map_err(|reason| format!("For Operation({}): {reason}", index + 1))?;
    }
    Ok(patched)
}

fn apply_one(patched: &mut Value, operation: &PatchOperation<Value>) -> Result<(), String> {
    match operation {
        PatchOperation::Add { path, value } => put(patched, path, value.clone(), Put::Insert),
        PatchOperation::Set { path, value } => put(patched, path, value.clone(), Put::Overwrite),
        PatchOperation::Replace { path, value } => {
            let absent = || format!("Node({path}) to be replaced is absent.");
            *find(patched, path.segments()).ok_or_else(absent)? = value.clone();
            Ok(())
        }
        PatchOperation::Remove { path } => take(patched, path).map(drop),
        PatchOperation::Increment { path, by } => increment(patched, path, by),
        PatchOperation::Move { from, path } => {
            let value = take(patched, from)?;
            put(patched, path, value, Put::Overwrite)
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Put {
    Insert,
    Overwrite,
}

/// The text for a path whose parent does not exist, or cannot have children.
fn no_parent(document: &Value, path: &JsonPointer, how: Put) -> String {
    let operation = match how {
        Put::Insert => "Add",
        Put::Overwrite => "Given",
    };
    let steps = path.segments();
    let mut known = document.clone();
    let missing = (1..steps.len()).find(|end| find(&mut known, &steps[..*end]).is_none());
    let beyond = steps[..missing.unwrap_or(steps.len().saturating_sub(1)).max(1)].join("/");
    format!(
        "{operation} Operation can only create a child object of an existing node(array or object) and cannot create \
         path recursively, no path found beyond: '{beyond}'."
    )
}

/// The text for a path with nothing to remove.
fn nothing_to_remove(path: &JsonPointer) -> String {
    format!(
        "Node({path}) to be removed is absent. Note: it may also have been removed earlier in the transaction."
    )
}

fn find<'a>(value: &'a mut Value, steps: &[String]) -> Option<&'a mut Value> {
    steps.iter().try_fold(value, |value, step| match value {
        Value::Object(members) => Arc::make_mut(members).get_mut(step),
        Value::Array(elements) => Arc::make_mut(elements).get_mut(index(step)?),
        _ => None,
    })
}

fn parent<'a, 'p>(document: &'a mut Value, path: &'p JsonPointer) -> Option<(&'a mut Value, &'p str)> {
    let (last, steps) = path.segments().split_last().expect("a pointer has at least one step");
    find(document, steps).map(|parent| (parent, last.as_str()))
}

fn put(document: &mut Value, path: &JsonPointer, value: Value, how: Put) -> Result<(), String> {
    match parent(document, path) {
        Some((Value::Object(members), name)) => Arc::make_mut(members).set(SmolStr::new(name), value),
        Some((Value::Array(elements), step)) => {
            let elements = Arc::make_mut(elements);
            let at = if step == "-" { Some(elements.len()) } else { index(step) };
            match at.filter(|at| *at <= elements.len()) {
                Some(at) if how == Put::Overwrite && at < elements.len() => elements[at] = value,
                Some(at) => elements.insert(at, value),
                None => return Err(format!("Index({step}) to operate on is out of array bounds.")),
            }
        }
        _ => return Err(no_parent(document, path, how)),
    }
    Ok(())
}

fn take(document: &mut Value, path: &JsonPointer) -> Result<Value, String> {
    let taken = match parent(document, path) {
        Some((Value::Object(members), name)) => Arc::make_mut(members).remove(name),
        Some((Value::Array(elements), step)) => {
            let elements = Arc::make_mut(elements);
            let at = index(step).filter(|at| *at < elements.len());
            let at = at.ok_or_else(|| format!("Index({step}) to operate on is out of array bounds."))?;
            Some(elements.remove(at))
        }
        _ => None,
    };
    taken.ok_or_else(|| nothing_to_remove(path))
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
        Some(_) => Err(format!("Node({path}) is not a number.")),
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
            (r#"{"a":[1,2]}"#, "/a/3", Err("Index(3) to operate on is out of array bounds")),
            (r#"{"a":1}"#, "/b/c", Err("Add Operation can only create a child")),
            (r#"{"a":1}"#, "/a/c", Err("no path found beyond: 'a'")),
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
        check(
            r#"{"a":1}"#,
            r#""op":"replace","path":"/b","value":2"#,
            Err("Node(/b) to be replaced is absent"),
        );
        check(r#"{"a":[1,2,3]}"#, r#""op":"remove","path":"/a/0""#, Ok(r#"{"a":[2,3]}"#));
        check(r#"{"a":1}"#, r#""op":"remove","path":"/b""#, Err("Node(/b) to be removed is absent"));
        check(r#"{"a/b":{"c~d":1}}"#, r#""op":"remove","path":"/a~1b/c~0d""#, Ok(r#"{"a/b":{}}"#));
    }

    #[test]
    fn increment_creates_adds_and_rejects_what_is_no_number() {
        check(r#"{}"#, r#""op":"incr","path":"/n","value":5"#, Ok(r#"{"n":5}"#));
        check(r#"{"n":1.5}"#, r#""op":"incr","path":"/n","value":5"#, Ok(r#"{"n":6.5}"#));
        let large = r#"{"n":9007199254740993}"#;
        check(large, r#""op":"incr","path":"/n","value":1"#, Ok(r#"{"n":9007199254740994}"#));
        check(r#"{"n":"x"}"#, r#""op":"incr","path":"/n","value":1"#, Err("Node(/n) is not a number"));
        for (number, by) in [("1.7e308", "1.7e308"), ("-1.7e308", "-1.7e308")] {
            let operation = format!(r#""op":"incr","path":"/n","value":{by}"#);
            check(&format!(r#"{{"n":{number}}}"#), &operation, Err("exceeds the largest number"));
        }
    }

    #[test]
    fn move_takes_and_puts() {
        let moved = r#""op":"move","from":"/a/b","path":"/c""#;
        check(r#"{"a":{"b":1},"c":2}"#, moved, Ok(r#"{"a":{},"c":1}"#));
        check(
            r#"{"a":1}"#,
            r#""op":"move","from":"/x","path":"/y""#,
            Err("Node(/x) to be removed is absent"),
        );
    }
}
