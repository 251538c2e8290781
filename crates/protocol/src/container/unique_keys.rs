//! The unique key policy of a container.
//!
//! Input and output: the `uniqueKeyPolicy` property. Enforcing it is left to the store.

use serde::{Deserialize, Serialize};

use crate::definition_error::{DefinitionError, invalid};
use crate::partition::PartitionKeyPath;

/// The largest number of unique keys of a container.
pub const UNIQUE_KEYS_MAX: usize = 10;
/// The largest number of paths of a unique key.
pub const UNIQUE_KEY_PATHS_MAX: usize = 16;

/// The values that must be unique within a logical partition. The policy cannot change once the container
/// exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UniqueKeyPolicy {
    /// The unique keys, each of which must hold.
    pub unique_keys: Vec<UniqueKey>,
}

/// Paths whose combined values must be unique. A missing value counts as null.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UniqueKey {
    /// The paths of the key; at least one.
    pub paths: Vec<PartitionKeyPath>,
}

impl UniqueKeyPolicy {
    /// Whether there are no unique keys.
    pub fn is_empty(&self) -> bool {
        self.unique_keys.is_empty()
    }

    /// Validates the number of keys and paths.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        let count = self.unique_keys.len();
        if count > UNIQUE_KEYS_MAX {
            return Err(invalid(format!(
                "The unique key policy has {count} unique keys. A maximum of {UNIQUE_KEYS_MAX} is allowed."
            )));
        }
        for key in &self.unique_keys {
            let count = key.paths.len();
            if count == 0 || count > UNIQUE_KEY_PATHS_MAX {
                return Err(invalid(format!(
                    "A unique key has {count} paths. It must have between 1 and {UNIQUE_KEY_PATHS_MAX}."
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_comes_back_as_it_was_sent() {
        let json = r#"{"uniqueKeys":[{"paths":["/a","/b/c"]},{"paths":["/d"]}]}"#;
        let policy: UniqueKeyPolicy = serde_json::from_str(json).expect("a policy");
        assert_eq!(policy.validate(), Ok(()));
        assert_eq!(serde_json::to_string(&policy).expect("plain data"), json);
        assert_eq!(serde_json::from_str::<UniqueKeyPolicy>("{}").expect("empty"), UniqueKeyPolicy::default());
    }

    #[test]
    fn keys_and_paths_are_counted() {
        let key = |paths: usize| UniqueKey { paths: vec!["/a".parse().expect("a path"); paths] };
        for (unique_keys, good) in [
            (vec![key(1); UNIQUE_KEYS_MAX], true),
            (vec![key(1); UNIQUE_KEYS_MAX + 1], false),
            (vec![key(0)], false),
            (vec![key(UNIQUE_KEY_PATHS_MAX)], true),
            (vec![key(UNIQUE_KEY_PATHS_MAX + 1)], false),
        ] {
            assert_eq!(UniqueKeyPolicy { unique_keys }.validate().is_ok(), good);
        }
    }
}
