//! Partition key values.
//!
//! Input and output: the components of a partition key, outermost level first. Their text form is in
//! `header`, their effective partition key in `effective`. Reading them from an item is left to the caller.

use std::hash::{Hash, Hasher};

/// The value of one level of a partition key.
#[derive(Clone, Debug)]
pub enum PartitionKeyComponent {
    /// The item has no such property, or it is an object or an array.
    Undefined,
    /// The JSON value `null`.
    Null,
    /// A JSON boolean value.
    Bool(bool),
    /// A number as a double: `1` and `1.0` are one key, `0` and `-0` are two.
    Number(f64),
    /// A JSON string value.
    String(String),
}

impl PartialEq for PartitionKeyComponent {
    fn eq(&self, other: &PartitionKeyComponent) -> bool {
        use PartitionKeyComponent::{Bool, Null, Number, String, Undefined};
        match (self, other) {
            (Undefined, Undefined) | (Null, Null) => true,
            (Bool(left), Bool(right)) => left == right,
            // By bits, because keys differ when their hashes do, and the hash covers the bits.
            (Number(left), Number(right)) => left.to_bits() == right.to_bits(),
            (String(left), String(right)) => left == right,
            (Undefined | Null | Bool(_) | Number(_) | String(_), _) => false,
        }
    }
}

impl Eq for PartitionKeyComponent {}

impl Hash for PartitionKeyComponent {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            PartitionKeyComponent::Undefined | PartitionKeyComponent::Null => {}
            PartitionKeyComponent::Bool(value) => value.hash(state),
            PartitionKeyComponent::Number(value) => value.to_bits().hash(state),
            PartitionKeyComponent::String(value) => value.hash(state),
        }
    }
}

impl From<&str> for PartitionKeyComponent {
    fn from(value: &str) -> PartitionKeyComponent {
        PartitionKeyComponent::String(value.to_owned())
    }
}

impl From<String> for PartitionKeyComponent {
    fn from(value: String) -> PartitionKeyComponent {
        PartitionKeyComponent::String(value)
    }
}

impl From<f64> for PartitionKeyComponent {
    fn from(value: f64) -> PartitionKeyComponent {
        PartitionKeyComponent::Number(value)
    }
}

impl From<bool> for PartitionKeyComponent {
    fn from(value: bool) -> PartitionKeyComponent {
        PartitionKeyComponent::Bool(value)
    }
}

impl From<i32> for PartitionKeyComponent {
    fn from(value: i32) -> PartitionKeyComponent {
        PartitionKeyComponent::Number(value.into())
    }
}

impl From<u32> for PartitionKeyComponent {
    fn from(value: u32) -> PartitionKeyComponent {
        PartitionKeyComponent::Number(value.into())
    }
}

impl From<&String> for PartitionKeyComponent {
    fn from(value: &String) -> PartitionKeyComponent {
        PartitionKeyComponent::String(value.clone())
    }
}

impl From<&serde_json::Value> for PartitionKeyComponent {
    /// The component for a value found at a partition key path.
    fn from(value: &serde_json::Value) -> PartitionKeyComponent {
        use serde_json::Value;
        match value {
            Value::Null => PartitionKeyComponent::Null,
            Value::Bool(value) => PartitionKeyComponent::Bool(*value),
            Value::Number(number) => {
                number.as_f64().map_or(PartitionKeyComponent::Undefined, PartitionKeyComponent::Number)
            }
            Value::String(value) => PartitionKeyComponent::String(value.clone()),
            Value::Array(_) | Value::Object(_) => PartitionKeyComponent::Undefined,
        }
    }
}

/// A partition key: one component, one per level of a hierarchical key, or fewer for a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionKey(Vec<PartitionKeyComponent>);

impl PartitionKey {
    /// A partition key of these components, outermost level first.
    pub fn new(components: Vec<PartitionKeyComponent>) -> PartitionKey {
        PartitionKey(components)
    }

    /// A partition key of one component.
    pub fn single(component: impl Into<PartitionKeyComponent>) -> PartitionKey {
        PartitionKey(vec![component.into()])
    }

    /// The components, outermost level first.
    pub fn components(&self) -> &[PartitionKeyComponent] {
        &self.0
    }

    /// Takes the components out of the key.
    pub fn into_components(self) -> Vec<PartitionKeyComponent> {
        self.0
    }

    /// Whether the components of `self` are the first components of `other`.
    pub fn is_prefix_of(&self, other: &PartitionKey) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl From<Vec<PartitionKeyComponent>> for PartitionKey {
    fn from(components: Vec<PartitionKeyComponent>) -> PartitionKey {
        PartitionKey(components)
    }
}

macro_rules! key_of_one {
    ($($one:ty),*) => {$(
        impl From<$one> for PartitionKey {
            fn from(component: $one) -> PartitionKey {
                PartitionKey::single(component)
            }
        }
    )*};
}

key_of_one!(&str, String, &String, f64, i32, u32, bool, PartitionKeyComponent);

impl<A, B> From<(A, B)> for PartitionKey
where
    A: Into<PartitionKeyComponent>,
    B: Into<PartitionKeyComponent>,
{
    /// A hierarchical partition key of two levels.
    fn from((outer, inner): (A, B)) -> PartitionKey {
        PartitionKey(vec![outer.into(), inner.into()])
    }
}

impl<A, B, C> From<(A, B, C)> for PartitionKey
where
    A: Into<PartitionKeyComponent>,
    B: Into<PartitionKeyComponent>,
    C: Into<PartitionKeyComponent>,
{
    /// A hierarchical partition key of three levels.
    fn from((outer, middle, inner): (A, B, C)) -> PartitionKey {
        PartitionKey(vec![outer.into(), middle.into(), inner.into()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_their_bits() {
        assert_eq!(PartitionKey::single(1.0), PartitionKey::single(f64::from(1u8)));
        assert_ne!(PartitionKey::single(0.0), PartitionKey::single(-0.0));
        assert_eq!(PartitionKey::single(f64::NAN), PartitionKey::single(f64::NAN));
    }

    #[test]
    fn values_of_different_types_are_different_keys() {
        let all = [
            PartitionKeyComponent::Undefined,
            PartitionKeyComponent::Null,
            PartitionKeyComponent::from(false),
            PartitionKeyComponent::from(0.0),
            PartitionKeyComponent::from(""),
        ];
        for (i, left) in all.iter().enumerate() {
            for (j, right) in all.iter().enumerate() {
                assert_eq!(left == right, i == j, "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn objects_and_arrays_count_as_undefined() {
        for (json, expected) in [
            ("{}", PartitionKeyComponent::Undefined),
            ("[1]", PartitionKeyComponent::Undefined),
            ("null", PartitionKeyComponent::Null),
            ("5", PartitionKeyComponent::Number(5.0)),
            ("18446744073709551615", PartitionKeyComponent::Number(18446744073709551615.0)),
            ("\"x\"", PartitionKeyComponent::from("x")),
        ] {
            let value: serde_json::Value = serde_json::from_str(json).expect("json");
            assert_eq!(PartitionKeyComponent::from(&value), expected);
        }
    }
}
