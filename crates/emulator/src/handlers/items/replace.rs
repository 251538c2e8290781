//! `PUT docs/{id}`.

use super::write_reply::Incoming;
use crate::gateway::{Reply, ServiceError};
use crate::handlers::ItemRequest;

/// Stores a new version; a different id in the body renames the item.
pub(super) fn replace(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let incoming = Incoming::read(request)?;
    let id = incoming.address.item_id(request, id);
    incoming.store(request, |transaction, document, precondition| {
        transaction.replace(&id, document, precondition)
    })
}
