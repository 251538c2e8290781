//! `If-Match` and `If-None-Match` on resources of the catalog.

use protocol::resource::SystemProperties;

use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};

/// Refuses a change to a resource that is no longer what the client saw.
pub(crate) fn check_if_match(
    headers: &RequestHeaders<'_>,
    system: &SystemProperties,
) -> Result<(), ServiceError> {
    match headers.if_match {
        Some(etag) if !etag.is_empty() && etag != "*" && etag != system.etag.as_str() => {
            Err(ServiceError::precondition_failed())
        }
        _ => Ok(()),
    }
}

/// 304 when the client already has this state of the resource.
pub(crate) fn not_modified(headers: &RequestHeaders<'_>, system: &SystemProperties) -> Option<Reply> {
    let etag = headers.if_none_match?;
    (etag == system.etag.as_str()).then(|| Reply::not_modified().version(system))
}
