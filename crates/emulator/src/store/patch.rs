//! Patch operations on a document. Pure: a document and instructions in, a document or a reason out.

use std::sync::Arc;

use smol_str::SmolStr;
use sql::{Number, Value};

/// Operations one patch may have.
pub(crate) const PATCH_OPERATIONS_MAX: usize = 10;

/// One instruction.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) action: Action,
    pub(crate) path: Pointer,
}

/// What an instruction does at its path.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Inserts a member or an element; elements after it move on.
    Add(Value),
    /// Inserts or overwrites.
    Set(Value),
    /// Overwrites what is there.
    Replace(Value),
    /// Takes out what is there.
    Remove,
    /// Adds to a number; a missing one counts as zero.
    Increment(Number),
    /// Takes what is at another path and puts it here.
    Move(Pointer),
}

/// A JSON pointer: the steps from the document to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer(Vec<SmolStr>);

impl Pointer {
    /// Reads `/a/0/b~1c`.
    pub(crate) fn parse(text: &str) -> Result<Pointer, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!("the patch path '{text}' is not a JSON pointer: it must begin with '/'"));
        };
        let step = |part: &str| SmolStr::from(part.replace("~1", "/").replace("~0", "~"));
        Ok(Pointer(rest.split('/').map(step).collect()))
    }

    fn starts_with(&self, other: &[SmolStr]) -> bool {
        self.0.len() >= other.len() && self.0.iter().zip(other).all(|(a, b)| a == b)
    }

    fn text(&self) -> String {
        self.0.iter().fold(String::new(), |text, step| text + "/" + step)
    }
}

/// Applies all of `operations`, in order, or none. `key_paths` are the partition key's members.
pub(crate) fn apply(
    document: &Value,
    operations: &[Operation],
    key_paths: &[Vec<SmolStr>],
) -> Result<Value, String> {
    if operations.is_empty() {
        return Err("a patch needs at least one operation".to_owned());
    }
    if operations.len() > PATCH_OPERATIONS_MAX {
        return Err(format!(
            "a patch may have {PATCH_OPERATIONS_MAX} operations, this one has {}; send the rest in another",
            operations.len()
        ));
    }
    let mut patched = document.clone();
    for operation in operations {
        check_path(&operation.path, key_paths)?;
        let path = &operation.path;
        match &operation.action {
            Action::Add(value) => put(&mut patched, path, value.clone(), Put::Insert)?,
            Action::Set(value) => put(&mut patched, path, value.clone(), Put::Overwrite)?,
            Action::Replace(value) => {
                *find(&mut patched, &path.0).ok_or_else(|| missing(path))? = value.clone()
            }
            Action::Remove => drop(take(&mut patched, path)?),
            Action::Increment(by) => increment(&mut patched, path, *by)?,
            Action::Move(from) => {
                check_path(from, key_paths)?;
                if path.starts_with(&from.0) && path != from {
                    return Err(format!(
                        "'{}' cannot be moved into itself at '{}'",
                        from.text(),
                        path.text()
                    ));
                }
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

fn check_path(path: &Pointer, key_paths: &[Vec<SmolStr>]) -> Result<(), String> {
    let first = path.0.first().map_or("", SmolStr::as_str);
    if matches!(first, "id" | "_rid" | "_self" | "_ts" | "_etag" | "_attachments") && path.0.len() == 1 {
        return Err(format!("the patch path '{}' names a property that patches may not change", path.text()));
    }
    let touches_key = |key: &Vec<SmolStr>| path.starts_with(key) || key.starts_with(&path.0);
    if key_paths.iter().any(touches_key) {
        return Err(format!(
            "the patch path '{}' is part of the partition key, which cannot change",
            path.text()
        ));
    }
    Ok(())
}

fn missing(path: &Pointer) -> String {
    format!("the patch path '{}' does not exist in the item", path.text())
}

fn find<'a>(value: &'a mut Value, steps: &[SmolStr]) -> Option<&'a mut Value> {
    steps.iter().try_fold(value, |value, step| match value {
        Value::Object(members) => Arc::make_mut(members).get_mut(step),
        Value::Array(elements) => Arc::make_mut(elements).get_mut(index(step)?),
        _ => None,
    })
}

fn parent<'a, 'p>(
    document: &'a mut Value,
    path: &'p Pointer,
) -> Result<(&'a mut Value, &'p SmolStr), String> {
    let (last, steps) = path.0.split_last().expect("a pointer has at least one step");
    find(document, steps).map(|parent| (parent, last)).ok_or_else(|| missing(path))
}

fn put(document: &mut Value, path: &Pointer, value: Value, how: Put) -> Result<(), String> {
    match parent(document, path)? {
        (Value::Object(members), name) => Arc::make_mut(members).set(name.clone(), value),
        (Value::Array(elements), step) => {
            let elements = Arc::make_mut(elements);
            let at = if step == "-" { Some(elements.len()) } else { index(step) };
            match at.filter(|at| *at <= elements.len()) {
                Some(at) if how == Put::Overwrite && at < elements.len() => elements[at] = value,
                Some(at) => elements.insert(at, value),
                None => return Err(format!("the patch path '{}' is outside the array", path.text())),
            }
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn take(document: &mut Value, path: &Pointer) -> Result<Value, String> {
    let taken = match parent(document, path)? {
        (Value::Object(members), name) => Arc::make_mut(members).remove(name),
        (Value::Array(elements), step) => {
            let elements = Arc::make_mut(elements);
            index(step).filter(|at| *at < elements.len()).map(|at| elements.remove(at))
        }
        _ => None,
    };
    taken.ok_or_else(|| missing(path))
}

fn increment(document: &mut Value, path: &Pointer, by: Number) -> Result<(), String> {
    match find(document, &path.0) {
        None => put(document, path, Value::Number(by), Put::Overwrite),
        Some(Value::Number(number)) => {
            *number = sum(*number, by);
            Ok(())
        }
        Some(_) => Err(format!("the patch path '{}' holds no number to increment", path.text())),
    }
}

/// Whole numbers stay whole, to the last of their 64 bits; the rest are doubles.
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
    use super::*;

    fn value(text: &str) -> Value {
        sql::value::parse(text.as_bytes()).unwrap()
    }

    fn operation(action: Action, path: &str) -> Operation {
        Operation { action, path: Pointer::parse(path).unwrap() }
    }

    #[track_caller]
    fn check(document: &str, action: Action, path: &str, expected: Result<&str, &str>) {
        let result = apply(&value(document), &[operation(action, path)], &[vec!["pk".into()]]);
        match (result, expected) {
            (Ok(patched), Ok(expected)) => assert_eq!(patched.to_string(), expected),
            (Err(reason), Err(fragment)) => assert!(reason.contains(fragment), "{reason}"),
            (result, expected) => panic!("{result:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn add_inserts_or_overwrites_members_and_shifts_elements() {
        check(r#"{"a":1}"#, Action::Add(value("2")), "/b", Ok(r#"{"a":1,"b":2}"#));
        check(r#"{"a":1}"#, Action::Add(value("2")), "/a", Ok(r#"{"a":2}"#));
        check(r#"{"a":[1,2]}"#, Action::Add(value("9")), "/a/1", Ok(r#"{"a":[1,9,2]}"#));
        check(r#"{"a":[1,2]}"#, Action::Add(value("9")), "/a/2", Ok(r#"{"a":[1,2,9]}"#));
        check(r#"{"a":[1,2]}"#, Action::Add(value("9")), "/a/-", Ok(r#"{"a":[1,2,9]}"#));
        check(r#"{"a":[1,2]}"#, Action::Add(value("9")), "/a/3", Err("outside the array"));
        check(r#"{"a":1}"#, Action::Add(value("9")), "/b/c", Err("does not exist"));
        check(r#"{"a":1}"#, Action::Add(value("9")), "/a/c", Err("does not exist"));
    }

    #[test]
    fn set_overwrites_an_element_instead_of_shifting() {
        check(r#"{"a":[1,2]}"#, Action::Set(value("9")), "/a/1", Ok(r#"{"a":[1,9]}"#));
        check(r#"{"a":{}}"#, Action::Set(value("9")), "/a/b", Ok(r#"{"a":{"b":9}}"#));
    }

    #[test]
    fn replace_and_remove_need_their_target() {
        check(r#"{"a":1}"#, Action::Replace(value("2")), "/a", Ok(r#"{"a":2}"#));
        check(r#"{"a":1}"#, Action::Replace(value("2")), "/b", Err("does not exist"));
        check(r#"{"a":[1,2,3]}"#, Action::Remove, "/a/0", Ok(r#"{"a":[2,3]}"#));
        check(r#"{"a":1}"#, Action::Remove, "/b", Err("does not exist"));
    }

    #[test]
    fn increment_creates_adds_and_refuses_what_is_no_number() {
        check(r#"{}"#, Action::Increment(Number::Int(5)), "/n", Ok(r#"{"n":5}"#));
        check(r#"{"n":1.5}"#, Action::Increment(Number::Int(5)), "/n", Ok(r#"{"n":6.5}"#));
        let large = r#"{"n":9007199254740993}"#;
        check(large, Action::Increment(Number::Int(1)), "/n", Ok(r#"{"n":9007199254740994}"#));
        check(r#"{"n":"x"}"#, Action::Increment(Number::Int(1)), "/n", Err("no number"));
    }

    #[test]
    fn move_takes_and_puts_but_not_into_itself() {
        let from = |path| Action::Move(Pointer::parse(path).unwrap());
        check(r#"{"a":{"b":1},"c":2}"#, from("/a/b"), "/c", Ok(r#"{"a":{},"c":1}"#));
        check(r#"{"a":{"b":1}}"#, from("/a"), "/a/b", Err("into itself"));
        check(r#"{"a":1}"#, from("/x"), "/y", Err("does not exist"));
    }

    #[test]
    fn identity_and_partition_key_are_out_of_reach() {
        for path in ["/id", "/_ts", "/_etag", "/pk"] {
            check(r#"{"id":"1","pk":"a"}"#, Action::Set(value("1")), path, Err("the patch path"));
        }
    }

    #[test]
    fn escaped_steps_and_operation_counts() {
        check(r#"{"a/b":{"c~d":1}}"#, Action::Remove, "/a~1b/c~0d", Ok(r#"{"a/b":{}}"#));
        assert!(apply(&value("{}"), &[], &[]).is_err());
        let many = vec![operation(Action::Set(value("1")), "/a"); 11];
        assert!(apply(&value("{}"), &many, &[]).unwrap_err().contains("11"));
    }
}
