//! Users and permissions of a database.
//!
//! Input and output: bodies. What a resource token allows is decided by the server.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definition_error::{DefinitionError, INVALID_INPUT};
use crate::resource::{SystemProperties, check_name};

/// The shortest and the longest lifetime of a resource token, in seconds.
pub const TOKEN_SECONDS: std::ops::RangeInclusive<u32> = 10..=86_400;
/// The lifetime of a resource token if the request does not set one.
pub const TOKEN_SECONDS_DEFAULT: u32 = 3600;

/// The body that describes a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The name of the user.
    #[serde(default)]
    pub id: String,
    /// The system properties of the user.
    #[serde(flatten)]
    pub system: SystemProperties,
    /// The link to the feed of permissions.
    #[serde(rename = "_permissions", default)]
    pub permissions: String,
}

impl User {
    /// The body of a user with these system properties.
    pub fn new(id: &str, system: SystemProperties) -> User {
        User { id: id.to_owned(), system, permissions: "permissions/".to_owned() }
    }

    /// Parses and validates the body of a create or replace request.
    pub fn parse(body: &[u8]) -> Result<User, DefinitionError> {
        let user: User = from_owner(body)?;
        check_name(&user.id)?;
        Ok(user)
    }
}

/// The operations that a permission allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PermissionMode {
    /// Allows reads and queries.
    Read,
    /// Allows all operations on the resource.
    All,
}

/// The `permissionMode` property as it was sent: Python writes `read`, JavaScript writes `Read`, and each
/// client compares the response with its own spelling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct PermissionModeText {
    text: String,
    mode: PermissionMode,
}

impl PermissionModeText {
    /// The mode that the text means.
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }
}

impl TryFrom<String> for PermissionModeText {
    type Error = String;

    fn try_from(text: String) -> Result<PermissionModeText, String> {
        let mode = match () {
            () if text.eq_ignore_ascii_case("read") => PermissionMode::Read,
            () if text.eq_ignore_ascii_case("all") => PermissionMode::All,
            () => return Err(format!("'{text}' is no permission mode, expected 'Read' or 'All'")),
        };
        Ok(PermissionModeText { text, mode })
    }
}

impl From<PermissionModeText> for String {
    fn from(value: PermissionModeText) -> String {
        value.text
    }
}

/// The body that describes a permission.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// The name of the permission.
    #[serde(default)]
    pub id: String,
    /// The operations that it allows.
    pub permission_mode: PermissionModeText,
    /// The link of the resource, by names or by ids.
    pub resource: String,
    /// The logical partition to which it is restricted, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_partition_key: Option<Vec<Value>>,
    /// The system properties of the permission.
    #[serde(flatten)]
    pub system: SystemProperties,
    /// The resource token that the user sends in `authorization`, URL-encoded.
    #[serde(rename = "_token", default)]
    pub token: String,
}

impl Permission {
    /// Parses and validates the body of a create or replace request.
    pub fn parse(body: &[u8]) -> Result<Permission, DefinitionError> {
        let permission: Permission = from_owner(body)?;
        check_name(&permission.id)?;
        Ok(permission)
    }
}

/// Parses what the owner of a resource sets. Some clients send system properties as well, or `null` for
/// everything that they do not set; both count as absent.
fn from_owner<T: DeserializeOwned>(body: &[u8]) -> Result<T, DefinitionError> {
    let mut members: Map<String, Value> = serde_json::from_slice(body).map_err(invalid_body)?;
    members.retain(|name, value| !name.starts_with('_') && !value.is_null());
    serde_json::from_value(Value::Object(members)).map_err(invalid_body)
}

fn invalid_body(error: serde_json::Error) -> DefinitionError {
    DefinitionError { message: format!("{INVALID_INPUT}. {error}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_permissions_have_the_services_members() {
        let system =
            SystemProperties { rid: "r".into(), self_link: "s/".into(), etag: "\"e\"".into(), ts: 5 };
        let user = serde_json::to_value(User::new("u", system.clone())).expect("plain data");
        let expected =
            r#"{"id":"u","_rid":"r","_self":"s/","_etag":"\"e\"","_ts":5,"_permissions":"permissions/"}"#;
        assert_eq!(user, serde_json::from_str::<Value>(expected).expect("json"));
        let sent =
            br#"{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c","resourcePartitionKey":["v"]}"#;
        let mut permission = Permission::parse(sent).expect("a permission");
        permission.system = system;
        permission.token = "type=resource&ver=1&sig=x".into();
        let expected = r#"{"id":"p","permissionMode":"Read","resource":"dbs/d/colls/c","resourcePartitionKey":["v"],
            "_rid":"r","_self":"s/","_etag":"\"e\"","_ts":5,"_token":"type=resource&ver=1&sig=x"}"#;
        let body = serde_json::to_value(&permission).expect("plain data");
        assert_eq!(body, serde_json::from_str::<Value>(expected).expect("json"));
    }

    #[test]
    fn a_permission_mode_is_read_in_any_case_and_returned_as_sent() {
        for (word, mode) in [
            ("Read", PermissionMode::Read),
            ("read", PermissionMode::Read),
            ("READ", PermissionMode::Read),
            ("All", PermissionMode::All),
            ("all", PermissionMode::All),
        ] {
            let body = format!(r#"{{"id":"p","permissionMode":"{word}","resource":"dbs/d"}}"#);
            let permission = Permission::parse(body.as_bytes()).expect(word);
            assert_eq!(permission.permission_mode.mode(), mode, "{word}");
            assert_eq!(serde_json::to_value(&permission).expect("plain data")["permissionMode"], word);
        }
    }

    #[test]
    fn members_that_are_null_count_as_absent() {
        let user = User::parse(br#"{"_rid":null,"id":"u","_etag":null,"_ts":null,"_permissions":null}"#);
        assert_eq!(user.expect("a user").id, "u");
        let body = br#"{"id":"p","resource":"dbs/d","permissionMode":"All","resourcePartitionKey":null,"_token":null,"_self":"x"}"#;
        let permission = Permission::parse(body).expect("a permission");
        assert_eq!((permission.resource_partition_key, permission.system.self_link.as_str()), (None, ""));
    }

    #[test]
    fn invalid_bodies_are_rejected() {
        for body in [
            "",
            "{}",
            r#"{"id":"p","resource":"r"}"#,
            r#"{"id":"p","permissionMode":"Write","resource":"r"}"#,
            r#"{"id":"p","permissionMode":"","resource":"r"}"#,
            r#"{"id":"p","permissionMode":1,"resource":"r"}"#,
        ] {
            assert!(Permission::parse(body.as_bytes()).is_err(), "{body}");
        }
        for body in ["", "{}", r#"{"id":"a/b"}"#] {
            assert!(User::parse(body.as_bytes()).is_err(), "{body}");
        }
    }
}
