//! The full-text policy of a container: which properties are searched, and in which language.
//!
//! Input and output: the `fullTextPolicy` property, validated together with the full-text indexes.
//! Searching is done by the crate `sql`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::indexing_policy::IndexingPolicy;
use crate::definition_error::{DefinitionError, invalid};
use crate::partition::PartitionKeyPath;

/// The languages that the service can stem.
pub const FULL_TEXT_LANGUAGES: [&str; 7] = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT"];

/// The properties of a container that full-text search covers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FullTextPolicy {
    /// The language of paths that do not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_language: Option<String>,
    /// The full-text paths, one per property.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full_text_paths: Vec<FullTextPath>,
    /// Further properties, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// A property that full-text search covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FullTextPath {
    /// The path of the property in the item.
    pub path: String,
    /// The language of the property, if it is not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Further properties, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl FullTextPolicy {
    /// Whether the policy is empty.
    pub fn is_empty(&self) -> bool {
        *self == FullTextPolicy::default()
    }

    /// The language of a path: its own, or the default one.
    pub fn language_of(&self, path: &str) -> Option<&str> {
        let own = self.full_text_paths.iter().find(|known| known.path == path);
        own.and_then(|known| known.language.as_deref()).or(self.default_language.as_deref())
    }

    /// Validates the languages and paths of the policy.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        self.default_language.as_deref().map_or(Ok(()), check_language)?;
        for FullTextPath { path, language, .. } in &self.full_text_paths {
            if PartitionKeyPath::parse(path).is_err() {
                return Err(invalid(format!("The Full Text Policy contains an invalid Path: {path}")));
            }
            language.as_deref().map_or(Ok(()), check_language)?;
        }
        Ok(())
    }

    /// Validates the full-text indexes against the policy.
    pub fn validate_indexes(&self, policy: &IndexingPolicy) -> Result<(), DefinitionError> {
        for (position, index) in policy.full_text_indexes.iter().enumerate() {
            let Some(path) = &index.path else {
                return Err(invalid(format!(
                    "Missing path in full-text index specification at index ({position})."
                )));
            };
            if PartitionKeyPath::parse(path).is_err() {
                return Err(invalid(format!(
                    "Full-text index specification at index ({position}) contains invalid path."
                )));
            }
            if !self.full_text_paths.iter().any(|known| known.path == *path) {
                return Err(invalid(format!(
                    "The path of the Full Text Index {path} does not match the path specified in the Full Text Policy."
                )));
            }
        }
        Ok(())
    }
}

fn check_language(language: &str) -> Result<(), DefinitionError> {
    if FULL_TEXT_LANGUAGES.contains(&language) {
        return Ok(());
    }
    let supported = FULL_TEXT_LANGUAGES.map(|language| format!("\"{language}\"")).join(", ");
    Err(invalid(format!(
        "The Full Text Policy contains an unsupported language {language}. Supported languages are: {supported}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(json: &str) -> FullTextPolicy {
        serde_json::from_str(json).expect("a policy")
    }

    #[test]
    fn languages_and_paths_are_checked() {
        for (json, expected) in [
            (
                r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/abstract","language":"en-US"}]}"#,
                None,
            ),
            (r#"{"defaultLanguage":"fr-FR","fullTextPaths":[{"path":"/abstract"}]}"#, None),
            (
                r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"abstract","language":"en-US"}]}"#,
                Some("The Full Text Policy contains an invalid Path: abstract"),
            ),
            (
                r#"{"defaultLanguage":"spa-SPA"}"#,
                Some(
                    "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are: \"en-US\"",
                ),
            ),
            (
                r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/abstract","language":"spa-SPA"}]}"#,
                Some(
                    "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are:",
                ),
            ),
        ] {
            let outcome = policy(json).validate();
            match expected {
                None => {
                    assert_eq!(outcome, Ok(()));
                    assert_eq!(serde_json::to_string(&policy(json)).expect("plain data"), json);
                }
                Some(fragment) => {
                    let message = outcome.expect_err(fragment).message;
                    assert!(message.contains(fragment), "{message}");
                }
            }
        }
    }

    #[test]
    fn full_text_indexes_must_fit_the_policy() {
        let text = policy(r#"{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/abstract"}]}"#);
        for (index, expected) in [
            (r#"{"path":"/abstract"}"#, ""),
            (
                r#"{"path":"/path"}"#,
                "The path of the Full Text Index /path does not match the path specified",
            ),
            (r#"{"path":"abstract"}"#, "Full-text index specification at index (0) contains invalid path"),
            (r#"{"not_path":"abstract"}"#, "Missing path in full-text index specification at index (0)"),
        ] {
            let indexes: IndexingPolicy =
                serde_json::from_str(&format!(r#"{{"fullTextIndexes":[{index}]}}"#)).expect("a policy");
            let message =
                text.validate_indexes(&indexes).map_or_else(|error| error.message, |()| String::new());
            assert!(message.contains(expected) && message.is_empty() == expected.is_empty(), "{message}");
        }
        assert_eq!(text.language_of("/abstract"), Some("en-US"));
    }
}
