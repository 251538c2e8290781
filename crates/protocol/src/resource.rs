//! Parts that all resources share: names, system properties and error bodies.
//!
//! Input and output: properties of bodies. Assigning ETags and timestamps is left to the server.

use serde::{Deserialize, Serialize};

use crate::definition_error::DefinitionError;
use crate::status::Status;

/// The properties that the service adds to every resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemProperties {
    /// The resource id, see [`crate::resource_id`].
    #[serde(rename = "_rid", default)]
    pub rid: String,
    /// The path of the resource by resource ids.
    #[serde(rename = "_self", default)]
    pub self_link: String,
    /// The version of the resource, in quotes.
    #[serde(rename = "_etag", default)]
    pub etag: String,
    /// When the resource was last written, in seconds since 1970.
    #[serde(rename = "_ts", default)]
    pub ts: u64,
}

/// The longest name of a database or container, in characters.
pub const NAME_CHARACTERS_MAX: usize = 255;
/// The longest id of an item, in bytes.
pub const ITEM_ID_BYTES_MAX: usize = 1023;

/// Validates the id of any resource but an item: not empty, at most 255 characters, none of `/ \ ? #`.
pub fn check_name(id: &str) -> Result<(), DefinitionError> {
    if id.is_empty() || id.chars().count() > NAME_CHARACTERS_MAX {
        return Err(invalid_name(id, "255"));
    }
    reject_characters(id, &['/', '\\', '?', '#'])
}

/// Validates the id of an item: not empty, at most 1023 bytes, no `\`.
pub fn check_item_id(id: &str) -> Result<(), DefinitionError> {
    if id.is_empty() || id.len() > ITEM_ID_BYTES_MAX {
        return Err(invalid_name(id, "1024"));
    }
    reject_characters(id, &['\\'])
}

fn invalid_name(id: &str, limit: &str) -> DefinitionError {
    let shown: String = id.chars().take(64).collect();
    let message = format!(
        "The input name '{shown}' is invalid. Ensure to provide a unique non-empty string less than '{limit}' \
         characters."
    );
    DefinitionError { message }
}

fn reject_characters(id: &str, refused: &[char]) -> Result<(), DefinitionError> {
    match id.chars().find(|character| refused.contains(character)) {
        None => Ok(()),
        Some(character) => {
            let message = format!("The input name '{id}' is invalid. It must not contain '{character}'.");
            Err(DefinitionError { message })
        }
    }
}

/// The body of an error response. Every error response has one, because clients parse it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorBody {
    /// The name of the status, such as `NotFound`.
    pub code: String,
    /// The text of the error.
    pub message: String,
    /// A query plan as JSON text, for queries that require one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_error_info: Option<String>,
}

impl ErrorBody {
    /// The body of an error response with this status.
    pub fn new(status: Status, message: impl Into<String>) -> ErrorBody {
        ErrorBody {
            code: status.code_name().to_owned(),
            message: message.into(),
            additional_error_info: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_without_slashes() {
        for (id, good) in [
            ("a", true),
            ("Validate 中文 Query", true),
            ("a,=.:~+-@()^${}[]!_%", true),
            (&"é".repeat(255), true),
            (&"a".repeat(256), false),
            ("", false),
            ("a/b", false),
            ("a\\b", false),
            ("a?b", false),
            ("a#b", false),
        ] {
            assert_eq!(check_name(id).is_ok(), good, "{id}");
        }
        let message = check_name(&"a".repeat(256)).expect_err("too long").message;
        assert!(message.contains("Ensure to provide a unique non-empty string less than '255' characters."));
    }

    #[test]
    fn item_ids_may_be_longer_and_have_more_characters() {
        for (id, good) in [
            ("a?b#c", true),
            ("a:b", true),
            ("trailing ", true),
            (&"a".repeat(1023), true),
            (&"a".repeat(1024), false),
            (&"é".repeat(512), false),
            ("", false),
            ("a/b", true),
            ("a\\b", false),
        ] {
            assert_eq!(check_item_id(id).is_ok(), good, "{id}");
        }
        let message = check_item_id("").expect_err("empty").message;
        assert!(message.contains("Ensure to provide a unique non-empty string less than '1024' characters."));
    }

    #[test]
    fn error_bodies_are_objects_with_code_and_message() {
        let body = ErrorBody::new(Status::NOT_FOUND, "gone");
        assert_eq!(
            serde_json::to_string(&body).expect("plain data"),
            r#"{"code":"NotFound","message":"gone"}"#
        );
    }
}
