//! Creating, replacing and deleting permissions.

use protocol::partition::PartitionKey;
use protocol::user::Permission;

use super::{check, shown, token};
use crate::handlers::users::address;
use crate::request::{Call, UserIds};
use crate::response::{Reply, ServiceError};
use engine::catalog::Refusal;

/// What a client says about a permission, checked.
fn read(call: &Call<'_>) -> Result<Permission, ServiceError> {
    let wanted = Permission::parse(&call.body)?;
    if wanted.resource.is_empty() {
        return Err(ServiceError::bad_request(
            "The required property 'resource' of the permission is empty.",
        ));
    }
    if let Some(key) = token::partition_key_text(&wanted) {
        PartitionKey::parse_header(&key).map_err(|error| {
            ServiceError::bad_request(format!("The permission's resourcePartitionKey is invalid: {error}."))
        })?;
    }
    Ok(wanted)
}

/// `POST …/permissions`: a new permission, 409 if the name or the resource is taken.
pub(crate) fn create(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let wanted = read(call)?;
    let lifetime = token::lifetime(call.headers)?;
    let entry = call.account.catalog.create_permission(address(ids), wanted, call.now)?;
    Ok(shown(Reply::created(token::with_token(call, &entry, lifetime)), &entry))
}

/// `POST …/permissions` with the upsert header.
pub(crate) fn upsert(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let wanted = read(call)?;
    let lifetime = token::lifetime(call.headers)?;
    let catalog = &call.account.catalog;
    match catalog.create_permission(address(ids), wanted.clone(), call.now) {
        Ok(entry) => Ok(shown(Reply::created(token::with_token(call, &entry, lifetime)), &entry)),
        Err(Refusal::Taken) => {
            let entry = catalog.replace_permission(address(ids), &wanted.id, call.now, |current| {
                check(call, current)?;
                Ok::<_, ServiceError>(wanted.clone())
            })?;
            Ok(shown(Reply::ok(token::with_token(call, &entry, lifetime)), &entry))
        }
        Err(error) => Err(error.into()),
    }
}

/// `PUT …/permissions/{permission}`.
pub(crate) fn replace(call: &Call<'_>, ids: &UserIds<'_>, permission: &str) -> Result<Reply, ServiceError> {
    let wanted = read(call)?;
    let lifetime = token::lifetime(call.headers)?;
    let entry = call.account.catalog.replace_permission(address(ids), permission, call.now, |current| {
        check(call, current)?;
        Ok::<_, ServiceError>(wanted)
    })?;
    Ok(shown(Reply::ok(token::with_token(call, &entry, lifetime)), &entry))
}

/// `DELETE …/permissions/{permission}`.
pub(crate) fn delete(call: &Call<'_>, ids: &UserIds<'_>, permission: &str) -> Result<Reply, ServiceError> {
    call.account.catalog.delete_permission(address(ids), permission, |current| check(call, current))?;
    Ok(Reply::no_content())
}
