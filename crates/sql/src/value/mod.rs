//! JSON values with undefined as a citizen.
//!
//! A [`Value`] clones in constant time: strings of up to 23 bytes are stored inline, everything
//! larger is shared. Reading and writing JSON text is in `json`, equality and order in `compare`,
//! the order-preserving byte form used by indexes in `order_key`.

mod compare;
mod hashable;
mod json;
mod number;
mod order_key;
mod read;

use std::sync::Arc;

pub use compare::{compare, compare_strings, deep_equal, total_order};
pub use hashable::HashableValue;
pub use json::{JsonError, NESTING_MAX, parse, parse_checking_canonical, write_json, write_json_string};
pub use number::Number;
pub use order_key::{ORDER_KEY_STRING_MAX, OrderKeyPrecision, encode_order_key, encode_whole_order_key};
pub use smol_str::SmolStr;

/// One value of the language.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// The absence of a value: a missing property, an operation that does not apply.
    #[default]
    Undefined,
    /// JSON `null`.
    Null,
    /// JSON `true` or `false`.
    Bool(bool),
    /// Any JSON number.
    Number(Number),
    /// Any JSON string.
    String(SmolStr),
    /// Elements in order; never holds `Undefined`.
    Array(Arc<Vec<Value>>),
    /// Members in the order they were written; never holds `Undefined`.
    Object(Arc<Object>),
}

/// The members of a JSON object, in the order they were written, each name once.
///
/// Look-up is linear: documents have few members per level, and whoever holds an `Object` has
/// already paid for parsing all of it.
#[derive(Clone, Debug, Default)]
pub struct Object {
    members: Vec<(SmolStr, Value)>,
}

/// The type of a value, in the order in which types sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// Sorts before everything.
    Undefined,
    /// `null`.
    Null,
    /// `false`, then `true`.
    Bool,
    /// By value.
    Number,
    /// By UTF-16 code unit.
    String,
    /// Element by element.
    Array,
    /// Member by member.
    Object,
}

impl Value {
    /// A string value.
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(SmolStr::new(text.as_ref()))
    }

    /// An array value; undefined elements are dropped, as an array constructor does.
    pub fn array(elements: impl IntoIterator<Item = Value>) -> Value {
        Value::Array(Arc::new(elements.into_iter().filter(Value::is_defined).collect()))
    }

    /// An object value; undefined members are dropped, as an object constructor does.
    pub fn object(members: impl IntoIterator<Item = (SmolStr, Value)>) -> Value {
        Value::Object(Arc::new(Object::from_members(members.into_iter().collect())))
    }

    /// Its type.
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

    /// Anything but undefined.
    pub fn is_defined(&self) -> bool {
        !matches!(self, Value::Undefined)
    }

    /// Exactly `true`: what WHERE asks.
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

    /// The members of an object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// `value.name`: undefined when there is no such member or no object.
    pub fn member(&self, name: &str) -> &Value {
        match self {
            Value::Object(members) => members.get(name).unwrap_or(&Value::Undefined),
            _ => &Value::Undefined,
        }
    }

    /// `value[index]` on an array: undefined when out of range or no array.
    pub fn element(&self, index: usize) -> &Value {
        match self {
            Value::Array(elements) => elements.get(index).unwrap_or(&Value::Undefined),
            _ => &Value::Undefined,
        }
    }
}

impl Object {
    /// Keeps the last value of a repeated name at the place of its first, and drops undefined.
    pub fn from_members(mut members: Vec<(SmolStr, Value)>) -> Object {
        merge_repeated(&mut members);
        members.retain(|(_, value)| value.is_defined());
        Object { members }
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// The value of `name`, to change in place.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.members.iter_mut().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Sets `name`, in place when it exists and at the end otherwise. Undefined removes it.
    pub fn set(&mut self, name: SmolStr, value: Value) {
        if !value.is_defined() {
            self.remove(&name);
        } else if let Some(existing) = self.get_mut(&name) {
            *existing = value;
        } else {
            self.members.push((name, value));
        }
    }

    /// Removes `name` and returns what it held.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.members.iter().position(|(member, _)| member == name)?;
        Some(self.members.remove(at).1)
    }

    /// The members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&SmolStr, &Value)> {
        self.members.iter().map(|(name, value)| (name, value))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// Pairwise below this many members; by sorting above it, so that a hostile object stays cheap.
const PAIRWISE_MAX: usize = 16;

/// A number that is the same for equal names, and nearly always another for others.
fn fingerprint(name: &str) -> u64 {
    let (bytes, length) = (name.as_bytes(), name.len());
    // Beginning and end: between them they hold all of a short name.
    let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
    };
    (first ^ last.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ length as u64
}

/// Whether a name may occur twice: surely not if no two fingerprints are equal.
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

/// Deep equality, numbers by value, member order ignored; undefined equals undefined.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        deep_equal(self, other)
    }
}
