//! Client encryption keys of a database: data encryption keys that clients have wrapped with a key of their own.
//!
//! Input and output: bodies. Nothing here encrypts: the account only stores what clients need to unwrap a key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definition_error::{DefinitionError, INVALID_INPUT, invalid};
use crate::resource::{SystemProperties, check_name};

/// The only algorithm with which clients encrypt data.
pub const DATA_ENCRYPTION_ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";

/// What a client defines of a client encryption key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientEncryptionKeyDefinition {
    /// The name of the key, by which encryption policies refer to it.
    pub id: String,
    /// The algorithm with which clients encrypt data under the key.
    pub encryption_algorithm: String,
    /// The data encryption key, wrapped by the client, in base64.
    pub wrapped_data_encryption_key: String,
    /// The key that wraps it: `type`, `name`, `value` and `algorithm`, as the client wrote them.
    pub key_wrap_metadata: Map<String, Value>,
}

/// The body that describes a client encryption key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEncryptionKey {
    /// What the client defined.
    #[serde(flatten)]
    pub definition: ClientEncryptionKeyDefinition,
    /// The system properties of the key.
    #[serde(flatten)]
    pub system: SystemProperties,
}

impl ClientEncryptionKeyDefinition {
    /// Parses and validates the body of a create or replace request. System properties are ignored.
    pub fn parse(body: &[u8]) -> Result<ClientEncryptionKeyDefinition, DefinitionError> {
        let members: Map<String, Value> =
            serde_json::from_slice(body).map_err(|error| invalid(format!("{INVALID_INPUT}. {error}")))?;
        let id = text(&members, "id")?;
        check_name(&id)?;
        let encryption_algorithm = text(&members, "encryptionAlgorithm")?;
        if encryption_algorithm != DATA_ENCRYPTION_ALGORITHM {
            return Err(invalid(format!(
                "{INVALID_INPUT}. EncryptionAlgorithm should be '{DATA_ENCRYPTION_ALGORITHM}'."
            )));
        }
        let wrapped_data_encryption_key = text(&members, "wrappedDataEncryptionKey")?;
        if wrapped_data_encryption_key.is_empty() || STANDARD.decode(&wrapped_data_encryption_key).is_err() {
            return Err(invalid(format!("{INVALID_INPUT}. 'wrappedDataEncryptionKey' has to be in base64.")));
        }
        let key_wrap_metadata = match members.get("keyWrapMetadata") {
            Some(Value::Object(metadata)) => metadata.clone(),
            None | Some(Value::Null) => return Err(missing("keyWrapMetadata")),
            Some(_) => {
                return Err(invalid(format!("{INVALID_INPUT}. 'keyWrapMetadata' has to be an object.")));
            }
        };
        for name in ["type", "name", "value"] {
            text(&key_wrap_metadata, name)?;
        }
        Ok(ClientEncryptionKeyDefinition {
            id,
            encryption_algorithm,
            wrapped_data_encryption_key,
            key_wrap_metadata,
        })
    }
}

/// The text of a required property.
fn text(members: &Map<String, Value>, name: &str) -> Result<String, DefinitionError> {
    match members.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        None | Some(Value::Null) => Err(missing(name)),
        Some(_) => Err(invalid(format!("{INVALID_INPUT}. '{name}' has to be a string."))),
    }
}

fn missing(name: &str) -> DefinitionError {
    invalid(format!(
        "The input content is invalid because the required properties - '{name}; ' - are missing"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key() -> Value {
        json!({
            "id": "k",
            "encryptionAlgorithm": DATA_ENCRYPTION_ALGORITHM,
            "wrappedDataEncryptionKey": "AQIDBA==",
            "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
        })
    }

    #[test]
    fn a_definition_comes_back_as_it_was_sent() {
        let mut sent = key();
        let parsed = ClientEncryptionKeyDefinition::parse(sent.to_string().as_bytes()).expect("a key");
        assert_eq!(serde_json::to_value(&parsed).expect("plain data"), sent);
        sent["_etag"] = json!("\"e\"");
        assert_eq!(ClientEncryptionKeyDefinition::parse(sent.to_string().as_bytes()), Ok(parsed));
    }

    #[test]
    fn what_is_missing_or_malformed_is_named() {
        for (pointer, value, part) in [
            ("/id", Value::Null, "'id; '"),
            ("/id", json!("a/b"), "id"),
            ("/encryptionAlgorithm", Value::Null, "'encryptionAlgorithm; '"),
            ("/encryptionAlgorithm", json!("AES"), "should be 'AEAD_AES_256_CBC_HMAC_SHA256'"),
            ("/wrappedDataEncryptionKey", json!("no base64!"), "base64"),
            ("/wrappedDataEncryptionKey", json!([1, 2]), "'wrappedDataEncryptionKey' has to be a string"),
            ("/keyWrapMetadata", Value::Null, "'keyWrapMetadata; '"),
            ("/keyWrapMetadata", json!("x"), "object"),
            ("/keyWrapMetadata/name", Value::Null, "'name; '"),
        ] {
            let mut sent = key();
            *sent.pointer_mut(pointer).expect("a member") = value;
            let refused = ClientEncryptionKeyDefinition::parse(sent.to_string().as_bytes());
            let message = refused.expect_err(pointer).message;
            assert!(message.contains(part), "{pointer}: {message}");
        }
        assert!(ClientEncryptionKeyDefinition::parse(b"[]").is_err());
    }
}
