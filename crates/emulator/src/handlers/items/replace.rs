//! `PUT docs/{id}`.

use super::write_reply::store_document;
use crate::gateway::{Reply, ServiceError};
use crate::handlers::ItemRequest;

/// Stores a new version; a different id in the body renames the item.
pub(super) fn replace(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    store_document(request, |transaction, document, address, precondition| {
        transaction.replace(&address.item_id(request, id), document, precondition)
    })
}
