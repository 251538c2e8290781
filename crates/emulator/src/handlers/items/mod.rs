//! Everything one can do to items.

use protocol::status::Status;

use super::ItemRequest;
use crate::gateway::{Reply, ServiceError};

/// Carries out an operation on items.
pub(crate) async fn handle(request: ItemRequest<'_>) -> Result<Reply, ServiceError> {
    let message = format!("{:?} is not there yet", request.operation);
    Err(ServiceError::new(Status::NOT_IMPLEMENTED, message))
}
