//! The client encryption policy of a container: which paths clients encrypt, and with which keys.
//!
//! Input and output: the `clientEncryptionPolicy` property. Clients encrypt; whether the keys exist is left to
//! the catalog.

use serde::{Deserialize, Serialize};

use crate::client_encryption_key::DATA_ENCRYPTION_ALGORITHM;
use crate::definition_error::{DefinitionError, invalid};
use crate::partition::PartitionKeyDefinition;

/// The version from which on ids and partition keys can be encrypted.
const VERSION_WITH_KEYS: u32 = 2;
const DETERMINISTIC: &str = "Deterministic";

/// The paths that clients encrypt. The policy cannot change once the container exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientEncryptionPolicy {
    /// The encrypted paths, each with its key.
    pub included_paths: Vec<ClientEncryptionPath>,
    /// The version of the policy, 1 or 2.
    pub policy_format_version: u32,
}

/// A path that clients encrypt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientEncryptionPath {
    /// The path of a property of the item itself, such as `/name`.
    pub path: String,
    /// The name of the client encryption key.
    pub client_encryption_key_id: String,
    /// The kind of encryption, `Deterministic` or `Randomized`.
    pub encryption_type: String,
    /// The algorithm with which clients encrypt the values.
    pub encryption_algorithm: String,
}

impl Default for ClientEncryptionPolicy {
    fn default() -> ClientEncryptionPolicy {
        ClientEncryptionPolicy { included_paths: Vec::new(), policy_format_version: 1 }
    }
}

impl ClientEncryptionPolicy {
    /// Whether clients encrypt anything.
    pub fn encrypts(&self) -> bool {
        !self.included_paths.is_empty()
    }

    /// The names of the keys, in the order of the paths; a name may come twice.
    pub fn key_ids(&self) -> impl Iterator<Item = &str> {
        self.included_paths.iter().map(|path| path.client_encryption_key_id.as_str())
    }

    /// Validates the version, and every path on its own and against the partition key.
    pub fn validate(&self, partition_key: &PartitionKeyDefinition) -> Result<(), DefinitionError> {
        let version = self.policy_format_version;
        if !(1..=VERSION_WITH_KEYS).contains(&version) {
            return Err(invalid(format!(
                "Supported versions of client encryption policy are 1 and 2. The version is {version}."
            )));
        }
        for (index, included) in self.included_paths.iter().enumerate() {
            included.validate()?;
            let path = &included.path;
            if self.included_paths[..index].iter().any(|earlier| earlier.path == *path) {
                return Err(invalid(format!("Duplicate Path found: {path}.")));
            }
            let name = &path[1..];
            let deterministic = included.encryption_type == DETERMINISTIC;
            if name == "id" && version < VERSION_WITH_KEYS {
                return Err(invalid(format!(
                    "Path: {path} cannot be encrypted with PolicyFormatVersion: {version}. Please use \
                     PolicyFormatVersion: 2."
                )));
            }
            if name == "id" && !deterministic {
                return Err(invalid(format!(
                    "Only Deterministic encryption type is supported for path: {path}."
                )));
            }
            let of_key = |key: &crate::partition::PartitionKeyPath| {
                key.segments().first().map(String::as_str) == Some(name)
            };
            if partition_key.system_key || !partition_key.paths.iter().any(of_key) {
                continue;
            }
            if version < VERSION_WITH_KEYS {
                return Err(invalid(format!(
                    "Path: {path} which is part of the partition key cannot be encrypted with \
                     PolicyFormatVersion: {version}. Please use PolicyFormatVersion: 2."
                )));
            }
            if !deterministic {
                return Err(invalid(format!(
                    "Path: {path} which is part of the partition key has to be encrypted with Deterministic \
                     type Encryption."
                )));
            }
        }
        Ok(())
    }
}

impl ClientEncryptionPath {
    fn validate(&self) -> Result<(), DefinitionError> {
        let valid = self.path.strip_prefix('/').is_some_and(|name| !name.is_empty() && !name.contains('/'));
        if !valid {
            return Err(invalid(format!("Invalid path '{}'.", self.path)));
        }
        if self.client_encryption_key_id.is_empty() {
            return Err(invalid(format!("ClientEncryptionKeyId is missing for path: {}.", self.path)));
        }
        if ![DETERMINISTIC, "Randomized"].contains(&self.encryption_type.as_str()) {
            return Err(invalid("EncryptionType should be either 'Deterministic' or 'Randomized'."));
        }
        if self.encryption_algorithm != DATA_ENCRYPTION_ALGORITHM {
            return Err(invalid(format!("EncryptionAlgorithm should be '{DATA_ENCRYPTION_ALGORITHM}'.")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str, encryption_type: &str) -> ClientEncryptionPath {
        ClientEncryptionPath {
            path: path.to_owned(),
            client_encryption_key_id: "k".to_owned(),
            encryption_type: encryption_type.to_owned(),
            encryption_algorithm: DATA_ENCRYPTION_ALGORITHM.to_owned(),
        }
    }

    fn check(version: u32, paths: Vec<ClientEncryptionPath>) -> Result<(), String> {
        let key =
            serde_json::from_str(r#"{"paths":["/pk/inner"],"kind":"Hash","version":2}"#).expect("a key");
        let policy = ClientEncryptionPolicy { included_paths: paths, policy_format_version: version };
        policy.validate(&key).map_err(|error| error.message)
    }

    #[test]
    fn ids_and_partition_keys_need_version_2_and_deterministic_encryption() {
        assert_eq!(check(1, vec![path("/a", "Randomized"), path("/b", DETERMINISTIC)]), Ok(()));
        assert_eq!(check(2, vec![path("/id", DETERMINISTIC), path("/pk", DETERMINISTIC)]), Ok(()));
        for (version, included, part) in [
            (1, path("/pk", DETERMINISTIC), "/pk which is part of the partition key cannot be encrypted"),
            (2, path("/pk", "Randomized"), "has to be encrypted with Deterministic"),
            (1, path("/id", DETERMINISTIC), "Please use PolicyFormatVersion: 2"),
            (2, path("/id", "Randomized"), "Only Deterministic encryption type is supported for path: /id."),
        ] {
            let message = check(version, vec![included]).expect_err(part);
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn versions_and_paths_are_checked() {
        for version in [0, 3] {
            assert!(check(version, Vec::new()).is_err(), "{version}");
        }
        for bad in ["", "a", "/", "/a/b"] {
            assert!(check(1, vec![path(bad, DETERMINISTIC)]).is_err(), "{bad}");
        }
        assert!(check(1, vec![path("/a", "Sometimes")]).is_err());
        assert!(check(1, vec![path("/a", DETERMINISTIC), path("/a", "Randomized")]).is_err());
        let nameless =
            ClientEncryptionPath { client_encryption_key_id: String::new(), ..path("/a", "Randomized") };
        assert!(check(1, vec![nameless]).is_err());
        let other =
            ClientEncryptionPath { encryption_algorithm: "AES".to_owned(), ..path("/a", "Randomized") };
        assert!(check(1, vec![other]).is_err());
    }

    #[test]
    fn a_policy_comes_back_as_it_was_sent() {
        let json = r#"{"includedPaths":[{"path":"/a","clientEncryptionKeyId":"k","encryptionType":"Randomized","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256"}],"policyFormatVersion":2}"#;
        let policy: ClientEncryptionPolicy = serde_json::from_str(json).expect("a policy");
        assert_eq!(serde_json::to_string(&policy).expect("plain data"), json);
        assert_eq!(policy.key_ids().collect::<Vec<_>>(), ["k"]);
        let bare: ClientEncryptionPolicy = serde_json::from_str("{}").expect("defaults");
        assert_eq!((bare.policy_format_version, bare.encrypts()), (1, false));
    }
}
