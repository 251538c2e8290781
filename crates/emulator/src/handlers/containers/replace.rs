//! `PUT …/colls/{container}`: new policies; the name and the partition key stay.

use super::{CHARGE_WRITE, definition, quota};
use crate::handlers::condition;
use crate::request::{Call, ContainerIds};
use crate::response::{Reply, ServiceError};

/// Replaces a container's properties.
pub(crate) fn replace(call: &Call<'_>, ids: &ContainerIds<'_>) -> Result<Reply, ServiceError> {
    call.principal.check_owner()?;
    let wanted = definition::read(call)?;
    let container =
        call.account.catalog.replace_container(&ids.database, &ids.container, call.now, |current| {
            condition::check_if_match(call.headers, &current.system)?;
            Ok::<_, ServiceError>(current.properties.replaced_by(wanted)?)
        })?;
    let reply = Reply::ok(container.json.clone()).version(&container.system).charge(CHARGE_WRITE);
    quota::add(reply, call.headers, &container)
}
