//! `GET …/permissions` and queries over it.

use bytes::Bytes;
use protocol::resource_id::PermissionRid;

use super::token;
use crate::handlers::feed::{Feed, FeedEntry, parse_continuation};
use crate::handlers::metadata_query;
use crate::handlers::users::address;
use crate::request::{Call, UserIds};
use crate::response::{Reply, ServiceError};

const PLURAL: &str = "Permissions";

/// Lists the permissions of a user, oldest first, each with a fresh token.
pub(crate) fn list(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let user = snapshot.user(address(ids)).map_err(|_| ServiceError::owner_not_found())?;
    let lifetime = token::lifetime(call.headers)?;
    let after: Option<PermissionRid> = parse_continuation(call.headers)?;
    let listed = user.permissions_after(after).map(|entry| FeedEntry {
        rid: entry.permission.system.rid.clone(),
        json: token::with_token(call, entry, lifetime),
    });
    Feed { parent: &user.system.rid, plural: PLURAL }.page(call, listed)
}

/// Answers a query over the permissions of a user.
pub(crate) fn query(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let user = snapshot.user(address(ids)).map_err(|_| ServiceError::owner_not_found())?;
    let lifetime = token::lifetime(call.headers)?;
    let resources: Vec<Bytes> =
        user.permissions_after(None).map(|entry| token::with_token(call, entry, lifetime)).collect();
    metadata_query::run_query(call, Feed { parent: &user.system.rid, plural: PLURAL }, resources.iter())
}
