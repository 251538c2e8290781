//! `/dbs/{database}/users` and `/dbs/{database}/users/{user}`.

mod list;
mod write;

use crate::handlers::condition;
use crate::request::{Call, FeedVerb, ResourceVerb, UserIds};
use crate::response::{Reply, ServiceError};
use engine::catalog::{UserAddress, UserEntry};

/// Anything asked of a database's users.
pub(crate) fn feed(call: &Call<'_>, database: &str, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list::list(call, database),
        FeedVerb::Query => list::query(call, database),
        FeedVerb::Create => write::create(call, database),
        FeedVerb::Upsert => write::upsert(call, database),
    }
}

/// Anything asked of one user.
pub(crate) fn one(call: &Call<'_>, ids: &UserIds<'_>, verb: ResourceVerb) -> Result<Reply, ServiceError> {
    match verb {
        ResourceVerb::Read => read(call, ids),
        ResourceVerb::Replace => write::replace(call, ids),
        ResourceVerb::Delete => write::delete(call, ids),
    }
}

fn read(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let user = snapshot.user(address(ids))?;
    if let Some(reply) = condition::not_modified(call.headers, &user.system) {
        return Ok(reply);
    }
    Ok(shown(Reply::ok(user.json.clone()), user))
}

/// Where a path's user is.
pub(crate) fn address<'a>(ids: &'a UserIds<'_>) -> UserAddress<'a> {
    UserAddress { database: &ids.database, user: &ids.user }
}

fn shown(reply: Reply, user: &UserEntry) -> Reply {
    reply.version(&user.system)
}
