//! `POST docs` with the upsert header.

use super::write_reply::store_document;
use crate::gateway::{Reply, ServiceError};
use crate::handlers::ItemRequest;

/// Stores an item, whether or not its id is taken: 201 or 200.
pub(super) fn upsert(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    store_document(request, |transaction, document, _, precondition| {
        transaction.upsert(document, precondition)
    })
}
