//! Permissions: `…/users/{user}/permissions` and `…/users/{user}/permissions/{permission}`.
//!
//! Clients read a permission with a resource token that they can pass on.

use std::time::Duration;

use bytes::Bytes;
use protocol::headers as name;
use protocol::partition::PartitionKey;
use protocol::resource_id::PermissionRid;
use protocol::user::{Permission, TOKEN_SECONDS, TOKEN_SECONDS_DEFAULT};
use serde_json::Value;

use super::feed::{Feed, FeedEntry, parse_position};
use super::users::address;
use super::{condition, metadata_query};
use crate::request::{
    Call, FeedVerb, Grant, PermissionTarget, RequestHeaders, ResourceVerb, UserIds, invalid_value,
};
use crate::response::{Reply, ServiceError};
use engine::catalog::{CatalogError, ListPosition, PermissionEntry};

/// Handles an operation on a user's permissions.
pub(crate) fn handle_feed(call: &Call<'_>, ids: &UserIds<'_>, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list(call, ids),
        FeedVerb::Query => query(call, ids),
        FeedVerb::Create => create(call, ids),
        FeedVerb::Upsert => upsert(call, ids),
    }
}

/// Handles an operation on one permission.
pub(crate) fn handle(
    call: &Call<'_>,
    ids: &UserIds<'_>,
    permission: &str,
    verb: ResourceVerb,
) -> Result<Reply, ServiceError> {
    match verb {
        ResourceVerb::Read => read(call, ids, permission),
        ResourceVerb::Replace => replace(call, ids, permission),
        ResourceVerb::Delete => delete(call, ids, permission),
    }
}

/// `GET …/permissions/{permission}`: reads a permission. Every read issues a new token, so it is never 304.
fn read(call: &Call<'_>, ids: &UserIds<'_>, permission: &str) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let user = snapshot.user(address(ids))?;
    let permission = user.permission(permission).ok_or_else(ServiceError::not_found)?;
    let lifetime = token_lifetime(call.headers)?;
    Ok(with_etag(Reply::ok(with_token(call, permission, lifetime)), permission))
}

/// Adds the etag of a permission to a reply.
fn with_etag(reply: Reply, permission: &PermissionEntry) -> Reply {
    reply.version(&permission.permission.system)
}

/// Rejects a change if the `If-Match` header does not match.
fn check_if_match(call: &Call<'_>, permission: &PermissionEntry) -> Result<(), ServiceError> {
    condition::check_if_match(call.headers, &permission.permission.system)
}

const PLURAL: &str = "Permissions";

/// `GET …/permissions`: lists the permissions of a user, oldest first, each with a new token.
fn list(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let user = snapshot.user(address(ids)).map_err(|_| ServiceError::owner_not_found())?;
    let lifetime = token_lifetime(call.headers)?;
    let position: ListPosition<PermissionRid> = parse_position(call.headers)?;
    let listed = user.permissions_after(position).map(|entry| FeedEntry {
        rid: entry.permission.system.rid.clone(),
        json: with_token(call, entry, lifetime),
    });
    Feed { parent: &user.system.rid, plural: PLURAL }.page(call, listed)
}

/// `POST …/permissions` with a query.
fn query(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let user = snapshot.user(address(ids)).map_err(|_| ServiceError::owner_not_found())?;
    let lifetime = token_lifetime(call.headers)?;
    let resources: Vec<Bytes> =
        user.permissions_after(None).map(|entry| with_token(call, entry, lifetime)).collect();
    metadata_query::run_query(call, Feed { parent: &user.system.rid, plural: PLURAL }, resources.iter())
}

/// Parses and checks the permission in the body.
fn parse_permission(call: &Call<'_>) -> Result<Permission, ServiceError> {
    let wanted = Permission::parse(&call.body)?;
    if wanted.resource.is_empty() {
        return Err(ServiceError::bad_request(
            "The required property 'resource' of the permission is empty.",
        ));
    }
    if let Some(key) = partition_key_text(&wanted) {
        PartitionKey::parse_header(&key).map_err(|error| {
            ServiceError::bad_request(format!("The permission's resourcePartitionKey is invalid: {error}."))
        })?;
    }
    Ok(wanted)
}

/// `POST …/permissions`: creates a permission; 409 if the id or the resource is taken.
fn create(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let wanted = parse_permission(call)?;
    let lifetime = token_lifetime(call.headers)?;
    let entry = call.account.catalog.create_permission(address(ids), wanted, call.now)?;
    Ok(with_etag(Reply::created(with_token(call, &entry, lifetime)), &entry))
}

/// `POST …/permissions` with the upsert header: creates or replaces a permission.
fn upsert(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let wanted = parse_permission(call)?;
    let lifetime = token_lifetime(call.headers)?;
    let catalog = &call.account.catalog;
    match catalog.create_permission(address(ids), wanted.clone(), call.now) {
        Ok(entry) => Ok(with_etag(Reply::created(with_token(call, &entry, lifetime)), &entry)),
        Err(CatalogError::AlreadyExists) => {
            let entry = catalog.replace_permission(address(ids), &wanted.id, call.now, |current| {
                check_if_match(call, current)?;
                Ok::<_, ServiceError>(wanted.clone())
            })?;
            Ok(with_etag(Reply::ok(with_token(call, &entry, lifetime)), &entry))
        }
        Err(error) => Err(error.into()),
    }
}

/// `PUT …/permissions/{permission}`: replaces a permission.
fn replace(call: &Call<'_>, ids: &UserIds<'_>, permission: &str) -> Result<Reply, ServiceError> {
    let wanted = parse_permission(call)?;
    let lifetime = token_lifetime(call.headers)?;
    let entry = call.account.catalog.replace_permission(address(ids), permission, call.now, |current| {
        check_if_match(call, current)?;
        Ok::<_, ServiceError>(wanted)
    })?;
    Ok(with_etag(Reply::ok(with_token(call, &entry, lifetime)), &entry))
}

/// `DELETE …/permissions/{permission}`: deletes a permission.
fn delete(call: &Call<'_>, ids: &UserIds<'_>, permission: &str) -> Result<Reply, ServiceError> {
    call.account
        .catalog
        .delete_permission(address(ids), permission, |current| check_if_match(call, current))?;
    Ok(Reply::no_content())
}

/// The requested lifetime of a token.
fn token_lifetime(headers: &RequestHeaders<'_>) -> Result<Duration, ServiceError> {
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

/// The permission as clients read it, with a token that is valid for `lifetime` from now.
fn with_token(call: &Call<'_>, entry: &PermissionEntry, lifetime: Duration) -> Bytes {
    let permission = &entry.permission;
    let target = PermissionTarget::resolve(&call.account.catalog.snapshot(), &permission.resource);
    let grant = Grant {
        container: target.as_ref().map(|target| target.container),
        item: target.and_then(|target| target.item),
        partition_key: partition_key_text(permission),
        mode: permission.permission_mode.mode(),
        sas_rights: None,
        issued_at: call.now.seconds(),
        expires_at: call.now.plus(lifetime).seconds(),
    };
    let resource = Permission { token: grant.sign(&call.account.key), ..permission.clone() };
    serde_json::to_vec(&resource).expect("strings and numbers always serialise").into()
}

/// The only partition key that a permission covers, in header form.
fn partition_key_text(permission: &Permission) -> Option<String> {
    permission.resource_partition_key.clone().map(|key| Value::Array(key).to_string())
}
