//! `DELETE …/colls/{container}`: the container and its items.

use super::CHARGE_WRITE;
use crate::handlers::condition;
use crate::request::{Call, ContainerIds};
use crate::response::{Reply, ServiceError};

/// Deletes a container.
pub(crate) fn delete(call: &Call<'_>, ids: &ContainerIds<'_>) -> Result<Reply, ServiceError> {
    call.principal.check_owner()?;
    call.account.catalog.delete_container(&ids.database, &ids.container, |container| {
        condition::check_if_match(call.headers, &container.system)
    })?;
    Ok(Reply::no_content().charge(CHARGE_WRITE))
}
