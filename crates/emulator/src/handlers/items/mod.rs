//! Operations on the items of one container, one file each.
//!
//! Input: an [`ItemRequest`] whose container exists and whose caller is authorized. Output: a [`Reply`]. A
//! handler parses the request (`partition_key`, `body`), uses the store or runs a query, adds the headers of the
//! serving partition (`partition_response`) and charges request units (`ru_admission`).

mod as_of;
mod batch;
mod batch_operation;
mod body;
mod change_feed;
mod create;
mod delete;
mod delete_partition;
mod encryption;
mod errors;
mod item_write;
mod partition_key;
mod partition_response;
mod patch;
mod query;
mod query_body;
mod query_plan;
mod read;
mod read_feed;
mod replace;
mod ru_admission;
mod scope;
mod upsert;

pub(crate) use query::check_cross_partition;
pub(crate) use ru_admission::RuAdmission;

use protocol::binary_json;
use protocol::status::Status;

use super::ItemRequest;
use crate::request::ItemOperation;
use crate::response::{Reply, ServiceError};
use engine::account::auto_split;

/// Carries out one operation on items.
pub(crate) fn handle(request: ItemRequest<'_>) -> Result<Reply, ServiceError> {
    errors::reject_triggers(request.call.headers)?;
    if !request.operation.is_read() {
        partition_response::check_session_token(request.call.headers)?;
    }
    if let ItemOperation::Create
    | ItemOperation::Upsert
    | ItemOperation::Replace(_)
    | ItemOperation::Patch(_) = request.operation
    {
        encryption::check_encrypted(&request)?;
    }
    let outcome = match &request.operation {
        ItemOperation::Read(id) => read::read(&request, id),
        ItemOperation::Create => create::create(&request),
        ItemOperation::Upsert => upsert::upsert(&request),
        ItemOperation::Replace(id) => replace::replace(&request, id),
        ItemOperation::Patch(id) => patch::patch(&request, id),
        ItemOperation::Delete(id) => delete::delete(&request, id),
        ItemOperation::Batch => batch::batch(&request),
        ItemOperation::ReadFeed => read_feed::read_feed(&request),
        ItemOperation::ChangeFeed => change_feed::change_feed(&request),
        ItemOperation::Query => query::query(&request),
        ItemOperation::QueryPlan => query_plan::query_plan(&request),
        ItemOperation::DeletePartition => delete_partition::delete_partition(&request),
    };
    if let Some(range) = request.container.store.take_oversized() {
        auto_split::split_oversized(request.call.account, request.container, range, request.call.uptime);
    }
    let reply = request.charge_outcome(outcome)?;
    encoded_as_requested(&request, reply)
}

/// Converts the body of a reply to binary JSON for a client that reads nothing else.
fn encoded_as_requested(request: &ItemRequest<'_>, reply: Reply) -> Result<Reply, ServiceError> {
    let is_batch = matches!(request.operation, ItemOperation::Batch | ItemOperation::QueryPlan);
    if reply.body.is_empty() || is_batch || !request.call.headers.wants_binary_json() {
        return Ok(reply);
    }
    let body = binary_json::from_text(&reply.body)
        .map_err(|error| ServiceError::new(Status::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(Reply { body: body.into(), ..reply })
}
