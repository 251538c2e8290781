//! Creating an item, `POST docs`.

use super::item_write::ItemWrite;
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};

/// Stores a new item; 409 if its id is taken in its logical partition.
pub(super) fn create(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    ItemWrite::read(request)?.store(request, |transaction, document, _| transaction.create(document))
}
