//! `POST docs`.

use super::write_reply::Incoming;
use crate::gateway::{Reply, ServiceError};
use crate::handlers::ItemRequest;

/// Stores a new item; 409 if its id is taken in its logical partition.
pub(super) fn create(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    Incoming::read(request)?.store(request, |transaction, document, _| transaction.create(document))
}
