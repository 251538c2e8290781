//! The partition key definition of a container: its paths, and how values are hashed.
//!
//! Input and output: the `partitionKey` property of a container. Hashing is done in `effective`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::key::PartitionKey;
use super::path::{PartitionKeyPath, PartitionKeyPathError};

/// The largest number of levels of a hierarchical partition key.
pub const PARTITION_KEY_PATHS_MAX: usize = 3;

/// The paths of a container's partition key, and how it is hashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionKeyDefinition {
    /// One path, or up to three for a hierarchical partition key.
    pub paths: Vec<PartitionKeyPath>,
    /// How the components are hashed; [`PartitionKeyKind::Hash`] if missing.
    #[serde(default)]
    pub kind: PartitionKeyKind,
    /// The version as the owner wrote it, and as responses repeat it. See
    /// [`PartitionKeyDefinition::version`] for the effective version.
    #[serde(default, rename = "version", skip_serializing_if = "Option::is_none")]
    pub stated_version: Option<PartitionKeyVersion>,
    /// Whether the container was created without a partition key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub system_key: bool,
}

impl PartitionKeyDefinition {
    /// One path hashed with version 2, which is the definition of nearly every container.
    pub fn hash(path: &str) -> Result<PartitionKeyDefinition, PartitionKeyPathError> {
        let paths = vec![PartitionKeyPath::parse(path)?];
        Ok(PartitionKeyDefinition::newest(paths, PartitionKeyKind::Hash))
    }

    /// The definition of a hierarchical partition key, hashed with version 2.
    pub fn multi_hash(paths: &[&str]) -> Result<PartitionKeyDefinition, PartitionKeyPathError> {
        let paths = paths.iter().map(|path| PartitionKeyPath::parse(path)).collect::<Result<_, _>>()?;
        Ok(PartitionKeyDefinition::newest(paths, PartitionKeyKind::MultiHash))
    }

    fn newest(paths: Vec<PartitionKeyPath>, kind: PartitionKeyKind) -> PartitionKeyDefinition {
        let stated_version = Some(PartitionKeyVersion::V2);
        PartitionKeyDefinition { paths, kind, stated_version, system_key: false }
    }

    /// The version of the hash; a definition without one means version 1.
    pub fn version(&self) -> PartitionKeyVersion {
        self.stated_version.unwrap_or_default()
    }

    /// Whether `key` has as many components as there are paths.
    pub fn completeness(&self, key: &PartitionKey) -> KeyCompleteness {
        match key.components().len().cmp(&self.paths.len()) {
            std::cmp::Ordering::Less => KeyCompleteness::Prefix,
            std::cmp::Ordering::Equal => KeyCompleteness::Complete,
            std::cmp::Ordering::Greater => KeyCompleteness::TooLong,
        }
    }

    /// Validates the number of paths, and that the kind fits the version.
    pub fn validate(&self) -> Result<(), PartitionKeyDefinitionError> {
        use PartitionKeyDefinitionError::{DuplicatePath, MultiHashNeedsVersion2, NoPaths, TooManyPaths};
        let count = self.paths.len();
        let max = match self.kind {
            PartitionKeyKind::Hash | PartitionKeyKind::Range => 1,
            PartitionKeyKind::MultiHash => PARTITION_KEY_PATHS_MAX,
        };
        if count == 0 {
            return Err(NoPaths);
        }
        if count > max {
            return Err(TooManyPaths { count, max });
        }
        if self.kind == PartitionKeyKind::MultiHash && self.version() != PartitionKeyVersion::V2 {
            return Err(MultiHashNeedsVersion2);
        }
        for (index, path) in self.paths.iter().enumerate() {
            if self.paths[..index].contains(path) {
                return Err(DuplicatePath(path.to_string()));
            }
        }
        Ok(())
    }
}

/// How a partition key becomes an effective partition key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PartitionKeyKind {
    /// All components are hashed together.
    #[default]
    Hash,
    /// Each component is hashed by itself, so that a prefix of the key covers an EPK range.
    MultiHash,
    /// The value itself, not hashed; only in old containers.
    Range,
}

/// The version of the hash function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PartitionKeyVersion {
    /// Version 1: a 32-bit hash followed by the value. Only the first 100 characters of a string count.
    #[default]
    V1,
    /// Version 2: a 126-bit hash.
    V2,
}

impl Serialize for PartitionKeyVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(match self {
            PartitionKeyVersion::V1 => 1,
            PartitionKeyVersion::V2 => 2,
        })
    }
}

/// A version as it is written: a number, or in Java the name of a constant.
#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenVersion {
    Number(u64),
    Name(String),
}

impl<'de> Deserialize<'de> for PartitionKeyVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PartitionKeyVersion, D::Error> {
        let written = WrittenVersion::deserialize(deserializer)?;
        match &written {
            WrittenVersion::Number(1) => return Ok(PartitionKeyVersion::V1),
            WrittenVersion::Number(2) => return Ok(PartitionKeyVersion::V2),
            WrittenVersion::Name(name) if name == "V1" => return Ok(PartitionKeyVersion::V1),
            WrittenVersion::Name(name) if name == "V2" => return Ok(PartitionKeyVersion::V2),
            WrittenVersion::Number(_) | WrittenVersion::Name(_) => {}
        }
        let written = match written {
            WrittenVersion::Number(number) => number.to_string(),
            WrittenVersion::Name(name) => name,
        };
        Err(serde::de::Error::custom(format!("partition key version {written} is neither 1 nor 2")))
    }
}

/// Whether a partition key has all components of its container's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyCompleteness {
    /// All components: the key of one logical partition.
    Complete,
    /// Only the first components, which queries and feeds accept.
    Prefix,
    /// More components than the container has paths.
    TooLong,
}

/// The error of an invalid partition key definition.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PartitionKeyDefinitionError {
    /// The definition has no paths.
    #[error("The partition key definition must have at least one path.")]
    NoPaths,
    /// The definition has more paths than its kind allows.
    #[error("Too many partition key paths ({count}) specified. A maximum of {max} is allowed.")]
    TooManyPaths {
        /// The number of paths.
        count: usize,
        /// The largest number of paths.
        max: usize,
    },
    /// Hierarchical partition keys require version 2.
    #[error("A partition key of kind 'MultiHash' requires version 2.")]
    MultiHashNeedsVersion2,
    /// Two paths are equal.
    #[error("The partition key path '{0}' is specified more than once.")]
    DuplicatePath(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> PartitionKeyDefinition {
        serde_json::from_str(json).expect("a definition")
    }

    #[test]
    fn kind_and_version_default_to_the_oldest() {
        let definition = parse(r#"{"paths":["/pk"]}"#);
        assert_eq!(definition.kind, PartitionKeyKind::Hash);
        assert_eq!(definition.version(), PartitionKeyVersion::V1);
        assert_eq!(
            serde_json::to_string(&definition).expect("plain data"),
            r#"{"paths":["/pk"],"kind":"Hash"}"#
        );
    }

    #[test]
    fn what_clients_send_comes_back_unchanged() {
        for json in [
            r#"{"paths":["/pk"],"kind":"Hash"}"#,
            r#"{"paths":["/pk"],"kind":"Hash","version":1}"#,
            r#"{"paths":["/pk"],"kind":"Hash","version":2}"#,
            r#"{"paths":["/a","/b/c","/d"],"kind":"MultiHash","version":2}"#,
            r#"{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true}"#,
        ] {
            assert_eq!(serde_json::to_string(&parse(json)).expect("plain data"), json);
            assert_eq!(parse(json).validate(), Ok(()));
        }
    }

    #[test]
    fn a_version_may_be_written_as_a_name() {
        for (name, number) in [("V1", PartitionKeyVersion::V1), ("V2", PartitionKeyVersion::V2)] {
            let definition = parse(&format!(r#"{{"paths":["/pk"],"version":"{name}"}}"#));
            assert_eq!(definition.stated_version, Some(number));
        }
    }

    #[test]
    fn malformed_definitions_are_rejected() {
        for json in [
            r#"{"paths":"/pk"}"#,
            r#"{"paths":["pk"]}"#,
            r#"{"paths":["/pk/"]}"#,
            r#"{"paths":["/pk"],"version":3}"#,
            r#"{"paths":["/pk"],"version":"V3"}"#,
            r#"{"paths":["/pk"],"kind":"Hush"}"#,
            r#"{"kind":"Hash"}"#,
        ] {
            assert!(serde_json::from_str::<PartitionKeyDefinition>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn a_definition_must_fit_its_kind() {
        use PartitionKeyDefinitionError as Bad;
        for (json, expected) in [
            (r#"{"paths":[]}"#, Bad::NoPaths),
            (r#"{"paths":["/a","/b"],"kind":"Hash","version":2}"#, Bad::TooManyPaths { count: 2, max: 1 }),
            (
                r#"{"paths":["/a","/b","/c","/d"],"kind":"MultiHash","version":2}"#,
                Bad::TooManyPaths { count: 4, max: 3 },
            ),
            (r#"{"paths":["/a","/b"],"kind":"MultiHash","version":1}"#, Bad::MultiHashNeedsVersion2),
            (r#"{"paths":["/a","/a"],"kind":"MultiHash","version":2}"#, Bad::DuplicatePath("/a".into())),
        ] {
            assert_eq!(parse(json).validate(), Err(expected), "{json}");
        }
        let message = Bad::TooManyPaths { count: 4, max: 3 }.to_string();
        assert_eq!(message, "Too many partition key paths (4) specified. A maximum of 3 is allowed.");
    }
}
