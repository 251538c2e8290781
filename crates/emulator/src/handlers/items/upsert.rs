//! `POST docs` with the upsert header.

use super::item_write::ItemWrite;
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};

/// Stores an item, whether or not its id is taken: 201 or 200.
pub(super) fn upsert(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    ItemWrite::read(request)?
        .store(request, |transaction, document, precondition| transaction.upsert(document, precondition))
}
