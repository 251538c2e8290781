//! JSON values, extended by undefined.
//!
//! A [`Value`] clones in constant time: strings of up to 23 bytes are stored inline, everything larger is
//! shared. Parsing and writing JSON text is in `json`, equality and order in `compare`, hashing in
//! `hashable` and `distinct_hash`, the order-preserving byte form for indexes in `order_key`.

mod compare;
mod distinct_hash;
mod hashable;
mod json;
mod number;
mod order_key;
mod read;

use std::sync::Arc;

pub use compare::{compare, compare_strings, deep_equal, total_order};
pub use distinct_hash::distinct_hash;
pub use hashable::HashableValue;
pub use json::{
    JsonError, NESTING_MAX, NotJson, check_json, is_json, parse, parse_checking_canonical, write_json,
    write_json_string,
};
pub use number::Number;
pub use order_key::{
    ORDER_KEY_STRING_MAX, OrderKeyPrecision, encode_hash_order_key, encode_order_key, encode_whole_order_key,
};
pub use smol_str::SmolStr;

/// A value of the SQL language.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// The absence of a value: a missing property, or an operation that does not apply.
    #[default]
    Undefined,
    /// The JSON value `null`.
    Null,
    /// The JSON value `true` or `false`.
    Bool(bool),
    /// A JSON number value.
    Number(Number),
    /// A JSON string value.
    String(SmolStr),
    /// A JSON array; its elements are never `Undefined`.
    Array(Arc<Vec<Value>>),
    /// A JSON object; its properties are never `Undefined`.
    Object(Arc<Object>),
}

/// The properties of a JSON object, in the order they were written, each name once.
///
/// Lookup is linear: documents have few properties per level, and a hash map would cost more to build.
#[derive(Clone, Debug, Default)]
pub struct Object {
    members: Vec<(SmolStr, Value)>,
}

/// The type of a value, in the order in which types sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// Undefined, which sorts before everything.
    Undefined,
    /// Null, the only value of its type.
    Null,
    /// Booleans: `false` sorts before `true`.
    Bool,
    /// Numbers, which sort by value.
    Number,
    /// Strings, which sort by UTF-16 code unit.
    String,
    /// Arrays, which sort element by element.
    Array,
    /// Objects, which sort property by property.
    Object,
}

impl Value {
    /// A string value with this text.
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(SmolStr::new(text.as_ref()))
    }

    /// An array value; undefined elements are dropped, as in an array constructor.
    pub fn array(elements: impl IntoIterator<Item = Value>) -> Value {
        Value::Array(Arc::new(elements.into_iter().filter(Value::is_defined).collect()))
    }

    /// An object value; undefined properties are dropped, as in an object constructor.
    pub fn object(members: impl IntoIterator<Item = (SmolStr, Value)>) -> Value {
        Value::Object(Arc::new(Object::from_members(members.into_iter().collect())))
    }

    /// The type of the value.
    pub fn kind(&self) -> ValueKind {
        match self {
            Value::Undefined => ValueKind::Undefined,
            Value::Null => ValueKind::Null,
            Value::Bool(_) => ValueKind::Bool,
            Value::Number(_) => ValueKind::Number,
            Value::String(_) => ValueKind::String,
            Value::Array(_) => ValueKind::Array,
            Value::Object(_) => ValueKind::Object,
        }
    }

    /// Whether the value is anything but undefined.
    pub fn is_defined(&self) -> bool {
        !matches!(self, Value::Undefined)
    }

    /// Whether the value is exactly `true`, as WHERE requires.
    pub fn is_true(&self) -> bool {
        matches!(self, Value::Bool(true))
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The value of a number, as a double.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(number.as_f64()),
            _ => None,
        }
    }

    /// The value of a whole number that fits 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Number(number) => number.as_i64(),
            _ => None,
        }
    }

    /// The elements of an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// The properties of an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// `value.name`: undefined if there is no such property or the value is no object.
    pub fn member(&self, name: &str) -> &Value {
        match self {
            Value::Object(members) => members.get(name).unwrap_or(&Value::Undefined),
            _ => &Value::Undefined,
        }
    }

    /// `value[index]` on an array: undefined if out of range or the value is no array.
    pub fn element(&self, index: usize) -> &Value {
        match self {
            Value::Array(elements) => elements.get(index).unwrap_or(&Value::Undefined),
            _ => &Value::Undefined,
        }
    }
}

impl Object {
    /// An object of these properties. A repeated name keeps its first position and its last value;
    /// undefined values are dropped.
    pub fn from_members(mut members: Vec<(SmolStr, Value)>) -> Object {
        merge_repeated(&mut members);
        members.retain(|(_, value)| value.is_defined());
        Object { members }
    }

    /// The value of property `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// The value of property `name`, for changing it in place.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.members.iter_mut().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Sets property `name`, in place if it exists and at the end otherwise. Undefined removes it.
    pub fn set(&mut self, name: SmolStr, value: Value) {
        if !value.is_defined() {
            self.remove(&name);
        } else if let Some(existing) = self.get_mut(&name) {
            *existing = value;
        } else {
            self.members.push((name, value));
        }
    }

    /// Removes property `name` and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.members.iter().position(|(member, _)| member == name)?;
        Some(self.members.remove(at).1)
    }

    /// The properties in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&SmolStr, &Value)> {
        self.members.iter().map(|(name, value)| (name, value))
    }

    /// The number of properties.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no properties.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// Up to this many properties, names are compared pairwise; above it by sorting, so that a hostile object
/// stays cheap.
const PAIRWISE_MAX: usize = 16;

/// A hash of a property name. By hand because it runs for every property of every parsed document: it reads
/// 16 bytes of the name instead of all of it, and equal hashes are compared again.
fn fingerprint(name: &str) -> u64 {
    let (bytes, length) = (name.as_bytes(), name.len());
    // The first and the last eight bytes contain all of a short name.
    let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
    };
    (first ^ last.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ length as u64
}

/// Whether a name may occur twice: it does not if all hashes differ.
fn may_repeat(members: &[(SmolStr, Value)]) -> bool {
    if members.len() <= PAIRWISE_MAX {
        let mut seen = [0; PAIRWISE_MAX];
        for (at, (name, _)) in members.iter().enumerate() {
            seen[at] = fingerprint(name);
            if seen[..at].contains(&seen[at]) {
                return true;
            }
        }
        return false;
    }
    let mut seen: Vec<u64> = members.iter().map(|(name, _)| fingerprint(name)).collect();
    seen.sort_unstable();
    seen.windows(2).any(|pair| pair[0] == pair[1])
}

fn merge_repeated(members: &mut Vec<(SmolStr, Value)>) {
    if !may_repeat(members) {
        return;
    }
    let mut first_at = std::collections::HashMap::with_capacity(members.len());
    let mut merged: Vec<(SmolStr, Value)> = Vec::with_capacity(members.len());
    for (name, value) in members.drain(..) {
        match first_at.get(&name) {
            Some(&at) => {
                let slot: &mut (SmolStr, Value) = &mut merged[at];
                slot.1 = value;
            }
            None => {
                first_at.insert(name.clone(), merged.len());
                merged.push((name, value));
            }
        }
    }
    *members = merged;
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(Number::Int(value))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Number(Number::from_f64(value))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::string(text)
    }
}

impl From<SmolStr> for Value {
    fn from(text: SmolStr) -> Value {
        Value::String(text)
    }
}

impl From<Number> for Value {
    fn from(number: Number) -> Value {
        Value::Number(number)
    }
}

/// Structural equality: numbers by value, property order ignored; undefined equals undefined.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        deep_equal(self, other)
    }
}
