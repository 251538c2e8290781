//! `DELETE docs/{id}`.

use super::served::Served;
use super::{partition_key, write_reply};
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};
use engine::charge;

/// Removes an item.
pub(super) fn delete(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let schema = request.container.store.schema();
    let address = partition_key::address(request, &schema)?;
    let id = address.item_id(request, id);
    let precondition = write_reply::precondition(request.call.headers)?;
    let (partition, commit) =
        request.container.store.write(&address.epk, request.moment(), |transaction| {
            transaction.delete(&address.epk, &id, precondition)
        })?;
    let served = Served::by(request.container, &partition, commit.progress.clone());
    let written = commit.result.map_err(|error| served.refusal(error.into()))?;
    let cost = charge::create(written.item.size(), written.terms_changed);
    Ok(served.reply(Reply::no_content().charge(cost)).committed_at(commit.quorum_at))
}
