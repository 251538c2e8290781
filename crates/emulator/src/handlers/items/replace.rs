//! `PUT docs/{id}`.

use super::item_write::ItemWrite;
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};

/// Stores a new version; a different id in the body renames the item.
pub(super) fn replace(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let incoming = ItemWrite::read(request)?;
    let id = incoming.address.item_id(request, id);
    incoming.store(request, |transaction, document, precondition| {
        transaction.replace(&id, document, precondition)
    })
}
