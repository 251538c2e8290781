//! Queries over resources of the catalog: databases, containers, offers, users, permissions.

use bytes::Bytes;

use super::feed::Feed;
use crate::gateway::{Call, Reply, ServiceError};

/// Answers the query in the body over `resources`, in their order.
pub(crate) fn answer<'a>(
    _call: &Call<'_>,
    _feed: Feed<'_>,
    _resources: impl Iterator<Item = &'a Bytes>,
) -> Result<Reply, ServiceError> {
    Err(ServiceError::bad_request("Queries over resources are not there yet."))
}
