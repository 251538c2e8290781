//! Upserting an item, `POST docs` with the upsert header.

use super::item_write::ItemWrite;
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};

/// Creates an item (201), or replaces it if its id is taken (200).
pub(super) fn upsert(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    ItemWrite::read(request)?
        .store(request, |transaction, document, precondition| transaction.upsert(document, precondition))
}
