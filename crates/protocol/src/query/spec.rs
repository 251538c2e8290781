//! The body of a query request: SQL text and parameters.
//!
//! Input: JSON. Output: the text and the parameters, borrowed from the body where possible. Parameter
//! values are not parsed: the caller has a value type of its own.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

/// The largest SQL text, in bytes.
pub const SQL_BYTES_MAX: usize = 512 * 1024;

/// The SQL text of a query and its parameters. A body with other members is not understood.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuerySpec<'a> {
    /// The SQL text of the query.
    #[serde(borrow)]
    pub query: Cow<'a, str>,
    /// The parameters of the query.
    #[serde(borrow, default, deserialize_with = "list_or_null")]
    pub parameters: Vec<QueryParameter<'a>>,
}

/// A query parameter and its value.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueryParameter<'a> {
    /// The name as it was sent, usually with its `@`. See [`QueryParameter::bare_name`].
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// The value as JSON text; `null` if it is missing.
    #[serde(borrow, default = "null")]
    pub value: &'a RawValue,
}

impl QueryParameter<'_> {
    /// The name without its `@`.
    pub fn bare_name(&self) -> &str {
        self.name.strip_prefix('@').unwrap_or(&self.name)
    }
}

/// The error of a body that is not a query.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuerySpecError {
    /// The body is not a JSON object with a query.
    #[error("the query body must be a JSON object with `query` and, if need be, `parameters`: {0}")]
    Malformed(String),
    /// The SQL text is too long.
    #[error("the SQL text has {0} bytes and may have 524288")]
    TooLong(usize),
}

impl<'a> QuerySpec<'a> {
    /// Parses the body of a query request.
    ///
    /// Cost: one pass; allocates the list, and the text only if it has escapes.
    pub fn parse(body: &'a [u8]) -> Result<QuerySpec<'a>, QuerySpecError> {
        let spec: QuerySpec<'a> =
            serde_json::from_slice(body).map_err(|error| QuerySpecError::Malformed(error.to_string()))?;
        if spec.query.len() > SQL_BYTES_MAX {
            return Err(QuerySpecError::TooLong(spec.query.len()));
        }
        Ok(spec)
    }
}

fn list_or_null<'de: 'a, 'a, D>(deserializer: D) -> Result<Vec<QueryParameter<'a>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    Option::<Vec<QueryParameter<'a>>>::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn null() -> &'static RawValue {
    RawValue::NULL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_with_or_without_parameters() {
        for body in [
            r#"{"query":"SELECT 1"}"#,
            r#"{"query":"SELECT 1","parameters":[]}"#,
            r#"{"query":"SELECT 1","parameters":null}"#,
        ] {
            let spec = QuerySpec::parse(body.as_bytes()).expect(body);
            assert_eq!((&*spec.query, spec.parameters.len()), ("SELECT 1", 0));
        }
        let body = br#"{"parameters":[{"name":"@a","value":{"z":1,"a":[1e400]}},{"name":"b","value":null},{"name":"@c"}],"query":"SELECT \"x\" \u4e2d"}"#;
        let spec = QuerySpec::parse(body).expect("a query");
        assert_eq!(spec.query, "SELECT \"x\" 中");
        let names: Vec<_> = spec.parameters.iter().map(QueryParameter::bare_name).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(spec.parameters[0].value.get(), r#"{"z":1,"a":[1e400]}"#, "untouched");
        assert_eq!((spec.parameters[1].value.get(), spec.parameters[2].value.get()), ("null", "null"));
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        let spec = QuerySpec::parse(br#"{"query":"SELECT * FROM c"}"#).expect("a query");
        assert!(matches!(spec.query, Cow::Borrowed(_)));
    }

    #[test]
    fn bodies_that_are_not_queries_are_rejected() {
        for body in [
            "",
            "{}",
            "[]",
            "\"SELECT 1\"",
            r#"{"query":1}"#,
            r#"{"query":"SELECT 1","more":1}"#,
            r#"{"query":"x","parameters":{}}"#,
            r#"{"query":"x","parameters":[{"value":1}]}"#,
        ] {
            assert!(matches!(QuerySpec::parse(body.as_bytes()), Err(QuerySpecError::Malformed(_))), "{body}");
        }
        let long = format!(r#"{{"query":"{}"}}"#, "x".repeat(SQL_BYTES_MAX + 1));
        assert_eq!(QuerySpec::parse(long.as_bytes()).err(), Some(QuerySpecError::TooLong(SQL_BYTES_MAX + 1)));
    }
}
