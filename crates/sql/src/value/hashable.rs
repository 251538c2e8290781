//! JSON values as keys of hash maps: equal when SQL says that they are equal.

use std::hash::{BuildHasher, Hash, Hasher};

use super::{Value, total_order};

/// A value that hashes and compares structurally: numbers by value, property order ignored, undefined equal
/// to itself.
#[derive(Clone, Debug)]
pub struct HashableValue(Value);

impl HashableValue {
    /// Wraps a value for use as the key of a hash map or set.
    pub fn new(value: Value) -> HashableValue {
        HashableValue(value)
    }

    /// The value that was wrapped.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

impl PartialEq for HashableValue {
    fn eq(&self, other: &HashableValue) -> bool {
        total_order(&self.0, &other.0).is_eq()
    }
}

impl Eq for HashableValue {}

impl Hash for HashableValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_value(&self.0, state);
    }
}

fn hash_value<H: Hasher>(value: &Value, state: &mut H) {
    (value.kind() as u8).hash(state);
    match value {
        Value::Undefined | Value::Null => {}
        Value::Bool(value) => value.hash(state),
        // Adding zero gives both zeros the same bits.
        Value::Number(number) => (number.as_f64() + 0.0).to_bits().hash(state),
        Value::String(text) => text.hash(state),
        Value::Array(elements) => {
            elements.len().hash(state);
            elements.iter().for_each(|element| hash_value(element, state));
        }
        Value::Object(members) => {
            // A sum does not depend on the order of the properties. The inner hasher has a fixed key, but
            // its result goes through the map's own keyed hasher.
            let fixed = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
            let sum = members.iter().fold(0u64, |sum, (name, member)| {
                let mut hasher = fixed.build_hasher();
                name.hash(&mut hasher);
                hash_value(member, &mut hasher);
                sum.wrapping_add(hasher.finish())
            });
            sum.hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn equal_values_are_one_key_and_others_are_not() {
        let texts = [
            "1",
            "1.0",
            "\"1\"",
            "0",
            "-0",
            "null",
            "false",
            "[1,2]",
            "[2,1]",
            "{\"a\":1,\"b\":[2]}",
            "{\"b\":[2.0],\"a\":1}",
            "{\"a\":1}",
        ];
        let keys: HashSet<HashableValue> = texts
            .iter()
            .map(|text| HashableValue(parse(text.as_bytes()).unwrap()))
            .chain([HashableValue(Value::Undefined)])
            .collect();
        assert_eq!(keys.len(), 10);
    }
}
