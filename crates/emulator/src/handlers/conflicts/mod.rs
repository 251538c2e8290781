//! `…/conflicts`: writes that lost against another region's.
//!
//! With one write region nothing ever conflicts, so the feed is there and empty.

use crate::catalog::ContainerEntry;
use crate::gateway::{Call, ConflictVerb, Reply, ServiceError};
use crate::handlers::feed::Feed;
use crate::handlers::{items, metadata_query};

/// Anything asked of a container's conflicts.
pub(crate) fn handle(
    call: &Call<'_>,
    container: &ContainerEntry,
    verb: ConflictVerb,
) -> Result<Reply, ServiceError> {
    let feed = Feed { parent: &container.system.rid, plural: "Conflicts" };
    match verb {
        ConflictVerb::List => Ok(feed.reply(std::iter::empty())),
        ConflictVerb::Query => {
            let headers = &call.headers;
            if headers.partition_key.is_none() && headers.partition_key_range_id.is_none() {
                items::check_cross_partition(headers)?;
            }
            metadata_query::answer(call, feed, std::iter::empty())
        }
        ConflictVerb::One => Err(ServiceError::not_found()),
    }
}
