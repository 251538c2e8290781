//! Features of the service that the emulator does not support: attachments, schemas and the like.
//!
//! Their feeds are empty and reading one is 404, because none exists. Creating, changing or running one is 400
//! with the name of the feature: nothing is stored that would never run.

use protocol::resource_path::ResourceType;

use super::feed::Feed;
use super::find_container;
use crate::request::{Call, ParentResource, Unsupported, UnsupportedVerb};
use crate::response::{Reply, ServiceError};

/// Handles a request for an unsupported feature.
pub(crate) fn handle(call: &Call<'_>, request: &Unsupported<'_>) -> Result<Reply, ServiceError> {
    let parent = parent_rid(call, &request.parent)?;
    match request.verb {
        UnsupportedVerb::List => {
            Ok(Feed { parent: &parent, plural: request.kind.feed_property() }.reply(std::iter::empty()))
        }
        UnsupportedVerb::Find => Err(ServiceError::not_found()),
        UnsupportedVerb::Use => Err(ServiceError::bad_request(format!(
            "{} are not supported by this account (resource type '{}').",
            feature(request.kind),
            request.kind,
        ))),
    }
}

fn parent_rid(call: &Call<'_>, parent: &ParentResource<'_>) -> Result<String, ServiceError> {
    match parent {
        ParentResource::Account => Ok(String::new()),
        ParentResource::Container(ids) => {
            Ok(find_container(call, &call.account.catalog.snapshot(), ids)?.system.rid.clone())
        }
    }
}

/// The name of the feature in error messages.
fn feature(kind: ResourceType) -> &'static str {
    match kind {
        ResourceType::Attachment => "Attachments",
        ResourceType::Schema => "Schemas",
        ResourceType::Media => "Media",
        _ => "Resources of this type",
    }
}
