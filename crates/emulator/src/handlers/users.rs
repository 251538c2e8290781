//! Users: `/dbs/{database}/users` and `/dbs/{database}/users/{user}`.

use std::sync::Arc;

use protocol::resource_id::UserRid;
use protocol::user::User;

use super::feed::{Feed, FeedEntry, parse_position};
use super::{condition, metadata_query};
use crate::request::{Call, FeedVerb, ResourceVerb, UserIds};
use crate::response::{Reply, ServiceError};
use engine::catalog::{CatalogError, DatabaseEntry, ListPosition, UserAddress, UserEntry};

/// Handles an operation on a database's users.
pub(crate) fn handle_feed(call: &Call<'_>, database: &str, verb: FeedVerb) -> Result<Reply, ServiceError> {
    match verb {
        FeedVerb::List => list(call, database),
        FeedVerb::Query => query(call, database),
        FeedVerb::Create => create(call, database),
        FeedVerb::Upsert => upsert(call, database),
    }
}

/// Handles an operation on one user.
pub(crate) fn handle(call: &Call<'_>, ids: &UserIds<'_>, verb: ResourceVerb) -> Result<Reply, ServiceError> {
    match verb {
        ResourceVerb::Read => read(call, ids),
        ResourceVerb::Replace => replace(call, ids),
        ResourceVerb::Delete => delete(call, ids),
    }
}

/// `GET …/users/{user}`: reads a user.
fn read(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let user = snapshot.user(address(ids))?;
    if let Some(reply) = condition::not_modified(call.headers, &user.system) {
        return Ok(reply);
    }
    Ok(with_etag(Reply::ok(user.json.clone()), user))
}

/// The user that a path addresses, for the catalog.
pub(crate) fn address<'a>(ids: &'a UserIds<'_>) -> UserAddress<'a> {
    UserAddress { database: &ids.database, user: &ids.user }
}

/// Adds the etag of a user to a reply.
fn with_etag(reply: Reply, user: &UserEntry) -> Reply {
    reply.version(&user.system)
}

/// `GET …/users`: lists the users of a database, oldest first.
fn list(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let database = find_database(call, database)?;
    let position: ListPosition<UserRid> = parse_position(call.headers)?;
    let users = database.users_after(position);
    user_feed(&database)
        .page(call, users.map(|entry| FeedEntry { rid: entry.system.rid.clone(), json: entry.json.clone() }))
}

/// `POST …/users` with a query.
fn query(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let database = find_database(call, database)?;
    metadata_query::run_query(call, user_feed(&database), database.users_after(None).map(|entry| &entry.json))
}

fn find_database(call: &Call<'_>, database: &str) -> Result<Arc<DatabaseEntry>, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    snapshot.database(database).cloned().ok_or_else(ServiceError::owner_not_found)
}

fn user_feed(database: &DatabaseEntry) -> Feed<'_> {
    Feed { parent: &database.system.rid, plural: "Users" }
}

/// `POST …/users`: creates a user; 409 if the id is taken.
fn create(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let User { id, .. } = User::parse(&call.body)?;
    let user = call.account.catalog.create_user(database, &id, call.now)?;
    Ok(with_etag(Reply::created(user.json.clone()), &user))
}

/// `POST …/users` with the upsert header: creates or replaces a user.
fn upsert(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let User { id, .. } = User::parse(&call.body)?;
    let catalog = &call.account.catalog;
    match catalog.create_user(database, &id, call.now) {
        Ok(user) => Ok(with_etag(Reply::created(user.json.clone()), &user)),
        Err(CatalogError::AlreadyExists) => {
            let address = UserAddress { database, user: &id };
            let user = catalog.replace_user(address, &id, call.now, |user| {
                condition::check_if_match(call.headers, &user.system)
            })?;
            Ok(with_etag(Reply::ok(user.json.clone()), &user))
        }
        Err(error) => Err(error.into()),
    }
}

/// `PUT …/users/{user}`: renames a user.
fn replace(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let User { id, .. } = User::parse(&call.body)?;
    let user = call.account.catalog.replace_user(address(ids), &id, call.now, |user| {
        condition::check_if_match(call.headers, &user.system)
    })?;
    Ok(with_etag(Reply::ok(user.json.clone()), &user))
}

/// `DELETE …/users/{user}`: deletes a user and its permissions.
fn delete(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    call.account
        .catalog
        .delete_user(address(ids), |user| condition::check_if_match(call.headers, &user.system))?;
    Ok(Reply::no_content())
}
