//! `…/conflicts`: writes that lost against another region's.
//!
//! With one write region nothing ever conflicts, so the feed is there and empty.

use crate::catalog::ContainerEntry;
use crate::gateway::{ConflictVerb, Reply, ServiceError};
use crate::handlers::feed::Feed;

/// Anything asked of a container's conflicts.
pub(crate) fn handle(container: &ContainerEntry, verb: ConflictVerb) -> Result<Reply, ServiceError> {
    match verb {
        ConflictVerb::List => {
            let feed = Feed { parent: &container.system.rid, plural: "Conflicts" };
            Ok(feed.reply(std::iter::empty()))
        }
        ConflictVerb::One => Err(ServiceError::not_found()),
    }
}
