//! A permission as its owner reads it: with a token to pass on.

use std::time::Duration;

use bytes::Bytes;
use protocol::headers as name;
use protocol::resource_id::ContainerRid;
use protocol::resource_path::{ResourcePath, ResourceType};
use protocol::user::{Permission, TOKEN_SECONDS, TOKEN_SECONDS_DEFAULT};
use serde_json::Value;

use crate::request::{Call, Grant, RequestHeaders, invalid_value};
use crate::response::ServiceError;
use engine::catalog::{PermissionEntry, Snapshot};

/// How long a token should live.
pub(crate) fn lifetime(headers: &RequestHeaders<'_>) -> Result<Duration, ServiceError> {
    let seconds = match headers.expiry_seconds {
        None => TOKEN_SECONDS_DEFAULT,
        Some(value) => value
            .to_str()
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .filter(|seconds| TOKEN_SECONDS.contains(seconds))
            .ok_or_else(|| invalid_value(name::EXPIRY_SECONDS, value))?,
    };
    Ok(Duration::from_secs(seconds.into()))
}

/// The resource, with a token that lives for `lifetime` from now.
pub(crate) fn with_token(call: &Call<'_>, entry: &PermissionEntry, lifetime: Duration) -> Bytes {
    let permission = &entry.permission;
    let place = place(&call.account.catalog.snapshot(), &permission.resource);
    let grant = Grant {
        container: place.as_ref().map(|place| place.container),
        item: place.and_then(|place| place.item),
        partition_key: partition_key_text(permission),
        mode: permission.permission_mode.mode(),
        issued_at: call.now.seconds(),
        expires_at: call.now.plus(lifetime).seconds(),
    };
    let resource = Permission { token: grant.sign(&call.account.key), ..permission.clone() };
    serde_json::to_vec(&resource).expect("strings and numbers always serialise").into()
}

/// The only partition key a permission covers, in header form.
pub(crate) fn partition_key_text(permission: &Permission) -> Option<String> {
    permission.resource_partition_key.clone().map(|key| Value::Array(key).to_string())
}

/// What a permission's link points at.
struct Place {
    container: ContainerRid,
    item: Option<String>,
}

/// Follows a link, by names or `_rid`s. A link to nothing makes a token that opens nothing: the
/// service lets clients write such permissions.
fn place(snapshot: &Snapshot, link: &str) -> Option<Place> {
    let path = ResourcePath::parse(link).ok()?;
    let container = snapshot.container(path.database()?, path.container()?).ok()?.rid;
    match path.resource_type() {
        ResourceType::Container => Some(Place { container, item: None }),
        ResourceType::Item => Some(Place { container, item: Some(path.item()?.to_owned()) }),
        _ => None,
    }
}
