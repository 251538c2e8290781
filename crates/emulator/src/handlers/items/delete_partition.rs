//! Deleting all items of one logical partition, `POST operations/partitionkeydelete`.

use std::ops::ControlFlow;

use protocol::status::Status;

use super::partition_key;
use super::partition_response::PartitionResponse;
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};
use engine::charge;
use engine::store::index::{IndexSpace, KeyRange};
use engine::store::{Precondition, WriteError};

/// Items deleted per transaction, so that other writers can run in between.
const STEP: usize = 256;

/// Deletes the items in several transactions.
pub(super) fn delete_partition(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    let store = &request.container.store;
    let schema = store.schema();
    let address = partition_key::address(request, &schema)?;
    let entries = KeyRange::prefix([IndexSpace::EPK.to_bytes().as_slice(), address.epk.as_bytes()].concat());
    let mut cost = 0.0;
    loop {
        let state = store.partition_of(&address.epk).latest_state();
        let step: Vec<_> = state
            .index
            .range(&entries)
            .filter_map(|entry| state.item(entry.ordinal()).cloned())
            // The entries of a longer key may begin with this one.
            .filter(|item| item.epk == address.epk)
            .take(STEP)
            .collect();
        let (partition, commit) = store.write(&address.epk, request.write_context(), |transaction| {
            for item in &step {
                match transaction.delete(&item.epk, &item.id, Precondition::None) {
                    Ok(written) => cost += charge::create(written.item.size(), written.terms_changed),
                    // Another request deleted it in the meantime.
                    Err(WriteError::NotFound) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(if step.len() < STEP { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        let partition_response =
            PartitionResponse::new(request.container, &partition, commit.progress.clone());
        if commit.result.map_err(|error| partition_response.error(error.into()))?.is_break() {
            let reply = Reply::new(Status::OK).charge(cost.max(charge::NOT_FOUND));
            return Ok(partition_response.add_headers(reply).committed_at(commit.quorum_at));
        }
    }
}
