//! Creating, replacing and deleting users.

use protocol::user::User;

use super::{address, shown};
use crate::handlers::condition;
use crate::request::{Call, UserIds};
use crate::response::{Reply, ServiceError};
use engine::catalog::{Refusal, UserAddress};

/// `POST …/users`: a new user, 409 if the name is taken.
pub(crate) fn create(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let User { id, .. } = User::parse(&call.body)?;
    let user = call.account.catalog.create_user(database, &id, call.now)?;
    Ok(shown(Reply::created(user.json.clone()), &user))
}

/// `POST …/users` with the upsert header.
pub(crate) fn upsert(call: &Call<'_>, database: &str) -> Result<Reply, ServiceError> {
    let User { id, .. } = User::parse(&call.body)?;
    let catalog = &call.account.catalog;
    match catalog.create_user(database, &id, call.now) {
        Ok(user) => Ok(shown(Reply::created(user.json.clone()), &user)),
        Err(Refusal::Taken) => {
            let address = UserAddress { database, user: &id };
            let user = catalog.replace_user(address, &id, call.now, |user| {
                condition::check_if_match(call.headers, &user.system)
            })?;
            Ok(shown(Reply::ok(user.json.clone()), &user))
        }
        Err(error) => Err(error.into()),
    }
}

/// `PUT …/users/{user}`: another name.
pub(crate) fn replace(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    let User { id, .. } = User::parse(&call.body)?;
    let user = call.account.catalog.replace_user(address(ids), &id, call.now, |user| {
        condition::check_if_match(call.headers, &user.system)
    })?;
    Ok(shown(Reply::ok(user.json.clone()), &user))
}

/// `DELETE …/users/{user}`: the user and its permissions.
pub(crate) fn delete(call: &Call<'_>, ids: &UserIds<'_>) -> Result<Reply, ServiceError> {
    call.account
        .catalog
        .delete_user(address(ids), |user| condition::check_if_match(call.headers, &user.system))?;
    Ok(Reply::no_content())
}
