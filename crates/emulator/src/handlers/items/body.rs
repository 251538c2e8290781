//! The body of a request as JSON text, whether it was sent as text or as binary JSON.

use std::borrow::Cow;

use protocol::binary_json;

use crate::handlers::ItemRequest;
use crate::response::ServiceError;
use engine::store::{ContainerSchema, Document};
use std::sync::Arc;

/// The body as JSON text. Binary bodies are labelled as text too; their first byte identifies them.
pub(super) fn text<'a>(request: &'a ItemRequest<'_>) -> Result<Cow<'a, [u8]>, ServiceError> {
    as_text(&request.call.body)
}

/// `body` as JSON text, converted if it is binary JSON.
pub(super) fn as_text(body: &[u8]) -> Result<Cow<'_, [u8]>, ServiceError> {
    if !binary_json::is_binary(body) {
        return Ok(Cow::Borrowed(body));
    }
    binary_json::to_text(body).map(Cow::Owned).map_err(|error| {
        ServiceError::bad_request(format!("The request payload is not valid binary JSON: {error}"))
    })
}

/// The body parsed as a document to store.
pub(super) fn document(
    request: &ItemRequest<'_>,
    schema: &Arc<ContainerSchema>,
) -> Result<Document, ServiceError> {
    Ok(Document::parse(&text(request)?, schema, request.now_seconds())?)
}
