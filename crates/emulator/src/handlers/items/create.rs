//! `POST docs`.

use super::write_reply::store_document;
use crate::gateway::{Reply, ServiceError};
use crate::handlers::ItemRequest;

/// Stores a new item; 409 if its id is taken in its logical partition.
pub(super) fn create(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    store_document(request, |transaction, document, _, _| transaction.create(document))
}
