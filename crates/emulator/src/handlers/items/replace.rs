//! Replacing an item, `PUT docs/{id}`.

use super::item_write::ItemWrite;
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};

/// Stores a new version of an item; a different id in the body renames it.
pub(super) fn replace(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let write = ItemWrite::read(request)?;
    let id = write.address.item_id(request, id);
    request.authorized.check_id(&id, write.id())?;
    write.store(request, |transaction, document, precondition| {
        transaction.replace(&id, document, precondition)
    })
}
