//! Writes to containers whose items clients encrypt.

use protocol::headers as name;

use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::ServiceError;

/// Rejects a write without the header of encrypting clients, if the container has an encryption policy. What was
/// sent is not looked at: only clients have the keys.
pub(super) fn check_encrypted(request: &ItemRequest<'_>) -> Result<(), ServiceError> {
    let policy = &request.container.properties.client_encryption_policy;
    if !policy.as_ref().is_some_and(|policy| policy.encrypts()) {
        return Ok(());
    }
    match RequestHeaders::flag(request.call.headers.is_client_encrypted, name::IS_CLIENT_ENCRYPTED)? {
        true => Ok(()),
        false => Err(ServiceError::bad_request(
            "Collection has ClientEncryptionPolicy set, but the document to be written isn't encrypted.",
        )),
    }
}
