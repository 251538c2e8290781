//! `…/users/{user}/permissions` and `…/users/{user}/permissions/{permission}`.

mod list;
mod token;
mod write;

use crate::handlers::condition;
use crate::handlers::users::address;
use crate::request::{Call, FeedVerb, ResourceVerb, UserIds};
use crate::response::{Reply, ServiceError};
use engine::catalog::PermissionEntry;

/// Anything asked of a user's permissions.
pub(crate) fn feed(call: &Call<'_>, ids: &UserIds<'_>, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list::list(call, ids),
        FeedVerb::Query => list::query(call, ids),
        FeedVerb::Create => write::create(call, ids),
        FeedVerb::Upsert => write::upsert(call, ids),
    }
}

/// Anything asked of one permission.
pub(crate) fn one(
    call: &Call<'_>,
    ids: &UserIds<'_>,
    permission: &str,
    verb: ResourceVerb,
) -> Result<Reply, ServiceError> {
    match verb {
        ResourceVerb::Read => read(call, ids, permission),
        ResourceVerb::Replace => write::replace(call, ids, permission),
        ResourceVerb::Delete => write::delete(call, ids, permission),
    }
}

/// Every read makes a fresh token, so an unchanged permission is never "not modified".
fn read(call: &Call<'_>, ids: &UserIds<'_>, permission: &str) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let user = snapshot.user(address(ids))?;
    let permission = user.permission(permission).ok_or_else(ServiceError::not_found)?;
    let lifetime = token::lifetime(call.headers)?;
    Ok(shown(Reply::ok(token::with_token(call, permission, lifetime)), permission))
}

fn shown(reply: Reply, permission: &PermissionEntry) -> Reply {
    reply.version(&permission.permission.system)
}

fn check(call: &Call<'_>, permission: &PermissionEntry) -> Result<(), ServiceError> {
    condition::check_if_match(call.headers, &permission.permission.system)
}
