//! Deleting an item, `DELETE docs/{id}`.

use super::partition_response::PartitionResponse;
use super::{item_write, partition_key};
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};
use engine::charge;

/// Deletes an item; 404 if there is none.
pub(super) fn delete(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let schema = request.container.store.schema();
    let address = partition_key::address(request, &schema)?;
    let id = address.item_id(request, id);
    let precondition = item_write::precondition(request.call.headers)?;
    let (partition, commit) =
        request.container.store.write(&address.epk, request.write_context(), |transaction| {
            transaction.delete(&address.epk, &id, precondition)
        })?;
    let partition_response = PartitionResponse::new(request.container, &partition, commit.progress.clone());
    let written = commit.result.map_err(|error| partition_response.error(error.into()))?;
    let cost = charge::create(written.item.size(), written.terms_changed);
    Ok(partition_response.add_headers(Reply::no_content().charge(cost)).committed_at(commit.quorum_at))
}
