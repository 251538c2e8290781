//! The full-text policy of a container: which properties are searched, and in which language.
//!
//! Input and output: the `fullTextPolicy` property, validated together with the full-text indexes.
//! Searching is done by the crate `sql`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::indexing_policy::IndexingPolicy;
use crate::definition_error::{DefinitionError, invalid};
use crate::partition::PartitionKeyPath;

/// The languages that the service can stem.
pub const FULL_TEXT_LANGUAGES: [&str; 7] = ["en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT"];

/// The Windows locale identifiers of these languages. Spanish has two, for its two orders of sorting.
const LOCALE_IDENTIFIERS: [(u32, &str); 8] = [
    (1033, "en-US"),
    (1031, "de-DE"),
    (3082, "es-ES"),
    (1034, "es-ES"),
    (1036, "fr-FR"),
    (1040, "it-IT"),
    (1046, "pt-BR"),
    (2070, "pt-PT"),
];

/// A language as a full-text policy writes it; the same form is written back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LanguageCode {
    /// A Windows locale identifier, such as 1033 for English.
    LocaleIdentifier(u32),
    /// A language tag such as `en-US`, or a locale identifier as text.
    Tag(String),
}

impl LanguageCode {
    /// The tag of the language, one of [`FULL_TEXT_LANGUAGES`]; `None` if it is not supported.
    pub fn supported_tag(&self) -> Option<&'static str> {
        let by_number = |number: u32| {
            LOCALE_IDENTIFIERS.iter().find(|(known, _)| *known == number).map(|(_, language)| *language)
        };
        match self {
            LanguageCode::LocaleIdentifier(number) => by_number(*number),
            LanguageCode::Tag(tag) => FULL_TEXT_LANGUAGES
                .into_iter()
                .find(|known| known == tag)
                .or_else(|| tag.parse().ok().and_then(by_number)),
        }
    }

    fn check(&self) -> Result<(), DefinitionError> {
        if self.supported_tag().is_some() {
            return Ok(());
        }
        let supported = FULL_TEXT_LANGUAGES.map(|language| format!("\"{language}\"")).join(", ");
        Err(invalid(format!(
            "The Full Text Policy contains an unsupported language {self}. Supported languages are: {supported}"
        )))
    }
}

impl fmt::Display for LanguageCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LanguageCode::LocaleIdentifier(number) => number.fmt(formatter),
            LanguageCode::Tag(tag) => tag.fmt(formatter),
        }
    }
}

impl From<&str> for LanguageCode {
    fn from(tag: &str) -> LanguageCode {
        LanguageCode::Tag(tag.to_owned())
    }
}

impl From<u32> for LanguageCode {
    fn from(locale_identifier: u32) -> LanguageCode {
        LanguageCode::LocaleIdentifier(locale_identifier)
    }
}

/// The properties of a container that full-text search covers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FullTextPolicy {
    /// The language of paths that do not name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_language: Option<LanguageCode>,
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
    pub language: Option<LanguageCode>,
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
    pub fn language_of(&self, path: &str) -> Option<&LanguageCode> {
        let own = self.full_text_paths.iter().find(|known| known.path == path);
        own.and_then(|known| known.language.as_ref()).or(self.default_language.as_ref())
    }

    /// Validates the languages and paths of the policy.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        self.default_language.as_ref().map_or(Ok(()), LanguageCode::check)?;
        for FullTextPath { path, language, .. } in &self.full_text_paths {
            if PartitionKeyPath::parse(path).is_err() {
                return Err(invalid(format!("The Full Text Policy contains an invalid Path: {path}")));
            }
            language.as_ref().map_or(Ok(()), LanguageCode::check)?;
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
            (r#"{"defaultLanguage":1033,"fullTextPaths":[{"path":"/abstract","language":1031}]}"#, None),
            (r#"{"defaultLanguage":"1033","fullTextPaths":[{"path":"/abstract","language":"3082"}]}"#, None),
            (
                r#"{"defaultLanguage":9999}"#,
                Some("The Full Text Policy contains an unsupported language 9999. Supported languages are:"),
            ),
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
        assert_eq!(text.language_of("/abstract"), Some(&"en-US".into()));
    }

    #[test]
    fn a_language_may_be_a_locale_identifier() {
        for (code, expected) in [
            (LanguageCode::from(1033), Some("en-US")),
            (1034.into(), Some("es-ES")),
            (2070.into(), Some("pt-PT")),
            ("1046".into(), Some("pt-BR")),
            ("fr-FR".into(), Some("fr-FR")),
            (1.into(), None),
            ("xx-XX".into(), None),
        ] {
            assert_eq!(code.supported_tag(), expected, "{code}");
        }
    }
}
