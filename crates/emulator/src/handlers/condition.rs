//! Preconditions, `If-Match` and `If-None-Match`, on databases, containers, offers, users and permissions.

use protocol::resource::SystemProperties;

use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};

/// Rejects a change if the `If-Match` header does not match the resource's etag.
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

/// 304 when the client already has this version of the resource.
pub(crate) fn not_modified(headers: &RequestHeaders<'_>, system: &SystemProperties) -> Option<Reply> {
    let etag = headers.if_none_match?;
    (etag == system.etag.as_str()).then(|| Reply::not_modified().version(system))
}
