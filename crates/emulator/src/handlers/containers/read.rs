//! `GET …/colls/{container}`.

use super::quota;
use crate::gateway::{Call, ContainerIds, Reply, ServiceError};
use crate::handlers::{check_incarnation, condition};

/// Reads a container's properties.
pub(crate) fn read(call: &Call<'_>, ids: &ContainerIds<'_>) -> Result<Reply, ServiceError> {
    let snapshot = call.account.catalog.snapshot();
    let container = snapshot.container(&ids.database, &ids.container)?;
    call.principal.check_read(container)?;
    check_incarnation(&call.headers, container)?;
    if let Some(reply) = condition::not_modified(&call.headers, &container.system) {
        return Ok(reply);
    }
    let reply = Reply::ok(container.json.clone()).version(&container.system);
    quota::add(reply, &call.headers, container)
}
