//! The database resource: the body of a create request and of responses.
//!
//! Input: the body of a create request. Output: the body that describes a database.

use serde::{Deserialize, Serialize};

use crate::definition_error::{DefinitionError, INVALID_INPUT};
use crate::resource::{SystemProperties, check_name};

/// The properties of a database that its owner sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseProperties {
    /// The name of the database.
    #[serde(default)]
    pub id: String,
}

impl DatabaseProperties {
    /// Parses and validates the body of a create request.
    pub fn parse(body: &[u8]) -> Result<DatabaseProperties, DefinitionError> {
        let properties: DatabaseProperties = serde_json::from_slice(body)
            .map_err(|error| DefinitionError { message: format!("{INVALID_INPUT}. {error}") })?;
        check_name(&properties.id)?;
        Ok(properties)
    }
}

/// The body that describes a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseBody {
    /// The name of the database.
    pub id: String,
    /// The system properties of the database.
    #[serde(flatten)]
    pub system: SystemProperties,
    /// The link to its feed of containers.
    #[serde(rename = "_colls", default)]
    pub containers: String,
    /// The link to its feed of users.
    #[serde(rename = "_users", default)]
    pub users: String,
}

impl DatabaseBody {
    /// The body of a database with these system properties.
    pub fn new(id: &str, system: SystemProperties) -> DatabaseBody {
        DatabaseBody { id: id.to_owned(), system, containers: "colls/".into(), users: "users/".into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_a_name_and_links() {
        let system = SystemProperties {
            rid: "AAAAAQ==".into(),
            self_link: "dbs/AAAAAQ==/".into(),
            etag: "\"e\"".into(),
            ts: 5,
        };
        let body = serde_json::to_value(DatabaseBody::new("d", system)).expect("plain data");
        let expected = r#"{"id":"d","_rid":"AAAAAQ==","_self":"dbs/AAAAAQ==/","_etag":"\"e\"","_colls":"colls/","_users":"users/","_ts":5}"#;
        assert_eq!(body, serde_json::from_str::<serde_json::Value>(expected).expect("json"));
    }

    #[test]
    fn a_database_needs_a_name() {
        assert_eq!(
            DatabaseProperties::parse(br#"{"id":"d","x":1}"#),
            Ok(DatabaseProperties { id: "d".into() })
        );
        for body in ["", "{}", r#"{"id":""}"#, r#"{"id":null}"#, r#"{"id":"a/b"}"#, "[]"] {
            assert!(DatabaseProperties::parse(body.as_bytes()).is_err(), "{body}");
        }
    }
}
