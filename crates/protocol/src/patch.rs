//! Patch requests: operations that change parts of an item.
//!
//! Input and output: the body of a PATCH request, as a client writes it and a server reads it. Values stay
//! JSON text until they are needed. Applying the operations is left to the store.

use std::borrow::Cow;
use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::partition::PartitionKeyDefinition;

/// The largest number of operations in one patch request.
pub const PATCH_OPERATIONS_MAX: usize = 10;

/// The body of a patch request.
#[derive(Clone, Debug, Serialize)]
pub struct PatchRequest<'a> {
    /// The operations, applied in order and atomically.
    pub operations: Vec<PatchOperation<&'a RawValue>>,
    /// A filter `from c where …`; the patch is applied only if the item satisfies it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<Cow<'a, str>>,
}

/// One patch operation. The type of its values is JSON text in requests, and a value type in the server.
#[derive(Clone, Debug, PartialEq)]
pub enum PatchOperation<V> {
    /// Adds a property, or inserts an array element.
    Add {
        /// The path to the new value.
        path: JsonPointer,
        /// The value to add.
        value: V,
    },
    /// Sets a property or an array element, whether it exists or not.
    Set {
        /// The path to the value.
        path: JsonPointer,
        /// The value to set.
        value: V,
    },
    /// Replaces an existing value.
    Replace {
        /// The path to the value.
        path: JsonPointer,
        /// The value that replaces it.
        value: V,
    },
    /// Removes an existing value.
    Remove {
        /// The path to the value.
        path: JsonPointer,
    },
    /// Adds to a number, or creates it.
    Increment {
        /// The path to the number.
        path: JsonPointer,
        /// The number to add.
        by: V,
    },
    /// Moves a value to another path.
    Move {
        /// The path from which the value is removed.
        from: JsonPointer,
        /// The path to which it is moved.
        path: JsonPointer,
    },
}

/// A path into an item, such as `/a/0/b`, with `~1` for `/` and `~0` for `~` in names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct JsonPointer(Vec<String>);

/// The error of an invalid patch request, with status 400.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatchError {
    /// The body is not a patch request.
    #[error("Invalid patch request: check syntax of patch specification: {0}")]
    Malformed(String),
    /// The request has no operations.
    #[error("The patch request has no operations.")]
    Empty,
    /// The request has more than [`PATCH_OPERATIONS_MAX`] operations.
    #[error("The number of patch operations cannot exceed '{PATCH_OPERATIONS_MAX}'; there are {0}.")]
    TooMany(usize),
    /// The type of an operation is unknown.
    #[error("The patch operation '{0}' is none of add, set, replace, remove, incr and move.")]
    UnknownOperation(String),
    /// An operation lacks a required property.
    #[error("The patch operation '{operation}' needs '{member}'.")]
    MissingMember {
        /// The type of the operation.
        operation: &'static str,
        /// The name of the missing property.
        member: &'static str,
    },
    /// A path is not a valid path into an item.
    #[error("The patch path '{0}' must start with '/' and name something.")]
    BadPath(String),
    /// The value of an increment is not a number.
    #[error("The patch operation 'incr' needs a number and got {0}.")]
    NotANumber(String),
    /// A move would put a value into itself.
    #[error("The patch operation 'move' cannot move '{0}' into itself.")]
    MoveIntoItself(String),
    /// A path leads to a property that the server sets, or to the id.
    #[error("Invalid patch request: Cannot patch system property {0}.")]
    SystemProperty(String),
    /// A path leads to a property that must not change.
    #[error("The patch path '{0}' names a property that cannot be patched.")]
    Protected(String),
}

impl<'a> PatchRequest<'a> {
    /// Parses the body of a patch request: an object with operations, or a list of operations.
    pub fn parse(body: &'a [u8]) -> Result<PatchRequest<'a>, PatchError> {
        let malformed = |error: serde_json::Error| PatchError::Malformed(error.to_string());
        let is_list = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
        let wire = if is_list {
            WireRequest { operations: serde_json::from_slice(body).map_err(malformed)?, condition: None }
        } else {
            serde_json::from_slice(body).map_err(malformed)?
        };
        match wire.operations.len() {
            0 => return Err(PatchError::Empty),
            1..=PATCH_OPERATIONS_MAX => {}
            count => return Err(PatchError::TooMany(count)),
        }
        let operations = wire.operations.into_iter().map(WireOperation::read).collect::<Result<_, _>>()?;
        Ok(PatchRequest { operations, condition: wire.condition })
    }
}

impl<V> PatchOperation<V> {
    /// The name used in request bodies, such as `incr`.
    pub fn name(&self) -> &'static str {
        match self {
            PatchOperation::Add { .. } => "add",
            PatchOperation::Set { .. } => "set",
            PatchOperation::Replace { .. } => "replace",
            PatchOperation::Remove { .. } => "remove",
            PatchOperation::Increment { .. } => "incr",
            PatchOperation::Move { .. } => "move",
        }
    }

    /// The paths that the operation changes: its path and, for a move, the source path.
    pub fn targets(&self) -> (&JsonPointer, Option<&JsonPointer>) {
        match self {
            PatchOperation::Add { path, .. }
            | PatchOperation::Set { path, .. }
            | PatchOperation::Replace { path, .. }
            | PatchOperation::Remove { path }
            | PatchOperation::Increment { path, .. } => (path, None),
            PatchOperation::Move { from, path } => (path, Some(from)),
        }
    }

    /// Checks that the operation changes neither the id, nor system properties, nor the partition key.
    pub fn check_targets(&self, key: &PartitionKeyDefinition) -> Result<(), PatchError> {
        let (path, from) = self.targets();
        for pointer in [Some(path), from].into_iter().flatten() {
            let segments = pointer.segments();
            let first = segments.first().map_or("", String::as_str);
            let is_system = matches!(first, "id" | "_rid" | "_self" | "_ts" | "_etag" | "_attachments");
            let holds_key = key
                .paths
                .iter()
                .any(|path| path.segments().starts_with(segments) || segments.starts_with(path.segments()));
            if is_system {
                return Err(PatchError::SystemProperty(first.to_owned()));
            }
            if holds_key {
                return Err(PatchError::Protected(pointer.to_string()));
            }
        }
        Ok(())
    }

    /// Converts the value of the operation to another type.
    pub fn try_map<W, E>(self, read: impl FnOnce(V) -> Result<W, E>) -> Result<PatchOperation<W>, E> {
        Ok(match self {
            PatchOperation::Add { path, value } => PatchOperation::Add { path, value: read(value)? },
            PatchOperation::Set { path, value } => PatchOperation::Set { path, value: read(value)? },
            PatchOperation::Replace { path, value } => PatchOperation::Replace { path, value: read(value)? },
            PatchOperation::Remove { path } => PatchOperation::Remove { path },
            PatchOperation::Increment { path, by } => PatchOperation::Increment { path, by: read(by)? },
            PatchOperation::Move { from, path } => PatchOperation::Move { from, path },
        })
    }

    fn value(&self) -> Option<&V> {
        match self {
            PatchOperation::Add { value, .. }
            | PatchOperation::Set { value, .. }
            | PatchOperation::Replace { value, .. }
            | PatchOperation::Increment { by: value, .. } => Some(value),
            PatchOperation::Remove { .. } | PatchOperation::Move { .. } => None,
        }
    }
}

impl<V: Serialize> Serialize for PatchOperation<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (path, from) = self.targets();
        let mut members = serializer.serialize_map(None)?;
        members.serialize_entry("op", self.name())?;
        if let Some(from) = from {
            members.serialize_entry("from", &from.to_string())?;
        }
        members.serialize_entry("path", &path.to_string())?;
        if let Some(value) = self.value() {
            members.serialize_entry("value", value)?;
        }
        members.end()
    }
}

impl JsonPointer {
    /// Parses a path. It must not be the whole item.
    pub fn parse(text: &str) -> Result<JsonPointer, PatchError> {
        let bad = || PatchError::BadPath(text.to_owned());
        let segments = text.strip_prefix('/').filter(|rest| !rest.is_empty()).ok_or_else(bad)?;
        let segments = segments.split('/').map(|segment| unescape(segment).ok_or_else(bad));
        segments.collect::<Result<_, _>>().map(JsonPointer)
    }

    /// The names and array indexes to follow, outermost first; at least one.
    pub fn segments(&self) -> &[String] {
        &self.0
    }
}

fn unescape(segment: &str) -> Option<String> {
    let mut text = String::with_capacity(segment.len());
    let mut rest = segment;
    while let Some((plain, escape)) = rest.split_once('~') {
        text.push_str(plain);
        let (character, after) = match escape.as_bytes().first() {
            Some(b'0') => ('~', &escape[1..]),
            Some(b'1') => ('/', &escape[1..]),
            _ => return None,
        };
        text.push(character);
        rest = after;
    }
    text.push_str(rest);
    Some(text)
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|segment| write!(f, "/{}", segment.replace('~', "~0").replace('/', "~1")))
    }
}

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow, default)]
    operations: Vec<WireOperation<'a>>,
    #[serde(borrow, default)]
    condition: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct WireOperation<'a> {
    #[serde(borrow, default)]
    op: Cow<'a, str>,
    #[serde(borrow, default)]
    path: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    from: Option<Cow<'a, str>>,
    /// `null` is a value here, unlike a missing property.
    #[serde(borrow, default, deserialize_with = "present")]
    value: Option<&'a RawValue>,
}

fn present<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> WireOperation<'a> {
    fn read(self) -> Result<PatchOperation<&'a RawValue>, PatchError> {
        const NAMES: [&str; 6] = ["add", "set", "replace", "remove", "incr", "move"];
        let name = NAMES.into_iter().find(|name| name.eq_ignore_ascii_case(&self.op));
        // The name that the documentation uses for `incr`.
        let name = name.or_else(|| self.op.eq_ignore_ascii_case("increment").then_some("incr"));
        let operation = name.ok_or_else(|| PatchError::UnknownOperation(self.op.into_owned()))?;
        let missing = |member| PatchError::MissingMember { operation, member };
        let path = JsonPointer::parse(&self.path.ok_or_else(|| missing("path"))?)?;
        let value = self.value.ok_or_else(|| missing("value"));
        Ok(match operation {
            "add" => PatchOperation::Add { path, value: value? },
            "set" => PatchOperation::Set { path, value: value? },
            "replace" => PatchOperation::Replace { path, value: value? },
            "remove" => PatchOperation::Remove { path },
            "incr" => {
                let by = value?;
                if !by.get().starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
                    return Err(PatchError::NotANumber(by.get().chars().take(64).collect()));
                }
                PatchOperation::Increment { path, by }
            }
            _ => {
                let from = JsonPointer::parse(&self.from.ok_or_else(|| missing("from"))?)?;
                if path != from && path.segments().starts_with(from.segments()) {
                    return Err(PatchError::MoveIntoItself(from.to_string()));
                }
                PatchOperation::Move { from, path }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(body: &str) -> Result<PatchRequest<'_>, PatchError> {
        PatchRequest::parse(body.as_bytes())
    }

    #[test]
    fn every_operation_is_read() {
        let patch = parse(
            r#"{"operations":[{"op":"add","path":"/a/b","value":{"z":1,"a":2}},{"op":"set","path":"/c/-","value":null},
               {"op":"replace","path":"/d~1e~0f","value":"x"},{"op":"remove","path":"/g"},
               {"op":"incr","path":"/h","value":-1.5},{"op":"move","from":"/i","path":"/j"}],
               "condition":"from c where c.x = 1"}"#,
        )
        .expect("a patch");
        assert_eq!(patch.condition.as_deref(), Some("from c where c.x = 1"));
        let [add, set, replace, remove, increment, moved] = &patch.operations[..] else {
            panic!("six operations")
        };
        assert!(
            matches!(add, PatchOperation::Add { path, value } if path.segments() == ["a", "b"] && value.get() == r#"{"z":1,"a":2}"#)
        );
        assert!(
            matches!(set, PatchOperation::Set { path, value } if path.segments() == ["c", "-"] && value.get() == "null")
        );
        assert!(matches!(replace, PatchOperation::Replace { path, .. } if path.segments() == ["d/e~f"]));
        assert!(matches!(remove, PatchOperation::Remove { path } if path.to_string() == "/g"));
        assert!(matches!(increment, PatchOperation::Increment { by, .. } if by.get() == "-1.5"));
        assert!(
            matches!(moved, PatchOperation::Move { from, path } if from.to_string() == "/i" && path.to_string() == "/j")
        );
    }

    #[test]
    fn what_a_client_builds_is_what_a_server_reads() {
        for body in [
            r#"{"operations":[{"op":"add","path":"/a/b","value":{"z":1,"a":2}},{"op":"set","path":"/c/-","value":null}]}"#,
            r#"{"operations":[{"op":"replace","path":"/d~1e~0f","value":"x"},{"op":"remove","path":"/g"}]}"#,
            r#"{"operations":[{"op":"incr","path":"/h","value":-1.5},{"op":"move","from":"/i","path":"/j"}],"condition":"from c where c.x = 1"}"#,
        ] {
            let patch = parse(body).expect("a patch");
            assert_eq!(serde_json::to_string(&patch).expect("plain data"), body);
        }
    }

    #[test]
    fn a_bare_array_is_a_patch_too() {
        let patch = parse(" [{\"op\":\"Increment\",\"path\":\"/a\",\"value\":1}]").expect("a patch");
        assert!(matches!(&patch.operations[..], [PatchOperation::Increment { .. }]));
    }

    #[test]
    fn invalid_patches_are_rejected_with_a_message() {
        use PatchError as Bad;
        let missing = |operation, member| Bad::MissingMember { operation, member };
        for (body, expected) in [
            ("[]", Bad::Empty),
            ("{}", Bad::Empty),
            (r#"{"operations":[]}"#, Bad::Empty),
            (r#"[{"op":"test","path":"/a","value":1}]"#, Bad::UnknownOperation("test".into())),
            (r#"[{"path":"/a"}]"#, Bad::UnknownOperation(String::new())),
            (r#"[{"op":"add","path":"/a"}]"#, missing("add", "value")),
            (r#"[{"op":"remove"}]"#, missing("remove", "path")),
            (r#"[{"op":"move","path":"/a"}]"#, missing("move", "from")),
            (r#"[{"op":"set","path":"a","value":1}]"#, Bad::BadPath("a".into())),
            (r#"[{"op":"set","path":"","value":1}]"#, Bad::BadPath("".into())),
            (r#"[{"op":"set","path":"/","value":1}]"#, Bad::BadPath("/".into())),
            (r#"[{"op":"set","path":"/a~2","value":1}]"#, Bad::BadPath("/a~2".into())),
            (r#"[{"op":"incr","path":"/a","value":"1"}]"#, Bad::NotANumber("\"1\"".into())),
            (r#"[{"op":"move","from":"/a","path":"/a/b"}]"#, Bad::MoveIntoItself("/a".into())),
        ] {
            assert_eq!(parse(body).err(), Some(expected), "{body}");
        }
        let many = |count: usize| format!("[{}]", vec![r#"{"op":"remove","path":"/a"}"#; count].join(","));
        assert!(parse(&many(10)).is_ok());
        assert_eq!(parse(&many(11)).err(), Some(Bad::TooMany(11)));
        for body in ["", "1", "null", "[1]", r#"{"operations":{}}"#, r#"{"operations":[],"condition":1}"#] {
            assert!(matches!(parse(body), Err(Bad::Malformed(_))), "{body}");
        }
    }

    #[test]
    fn id_partition_key_and_system_properties_cannot_be_patched() {
        let key = PartitionKeyDefinition::multi_hash(&["/tenant", "/address/city"]).expect("a key");
        for (path, good) in [
            ("/a", true),
            ("/address/street", true),
            ("/tenants", true),
            ("/nested/id", true),
            ("/id", false),
            ("/_ts", false),
            ("/_etag", false),
            ("/_rid", false),
            ("/_self", false),
            ("/_attachments", false),
            ("/tenant", false),
            ("/tenant/name", false),
            ("/address", false),
            ("/address/city", false),
        ] {
            let set = format!(r#"[{{"op":"set","path":"{path}","value":1}}]"#);
            let from = format!(r#"[{{"op":"move","path":"/b","from":"{path}"}}]"#);
            for body in [set, from] {
                let patch = parse(&body).expect("a patch");
                assert_eq!(patch.operations[0].check_targets(&key).is_ok(), good, "{body}");
            }
        }
    }

    proptest! {
        #[test]
        fn a_pointer_survives_its_text(names in prop::collection::vec("[a-z~/0-9]{1,5}", 1..5)) {
            let pointer = JsonPointer(names);
            prop_assert_eq!(JsonPointer::parse(&pointer.to_string()), Ok(pointer));
        }

        #[test]
        fn any_body_parses_or_fails_without_panic(text in any::<String>(), path in "[/~0-9a]{0,8}") {
            let _ = parse(&text);
            let _ = JsonPointer::parse(&path);
        }
    }
}
