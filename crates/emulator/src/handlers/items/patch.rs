//! Patching an item, `PATCH docs/{id}`.

use protocol::patch::{PatchOperation, PatchRequest};
use serde_json::value::RawValue;
use sql::{PatchCondition, QueryContext, Value};

use super::partition_response::PartitionResponse;
use super::{body, item_write, partition_key};
use crate::handlers::ItemRequest;
use crate::response::{Reply, ServiceError};
use engine::charge;
use engine::store::{ContainerSchema, WriteError, apply_patch};

/// The operations of a patch, and its condition.
pub(super) struct Patch {
    operations: Vec<PatchOperation<Value>>,
    condition: Option<PatchCondition>,
}

/// Applies a patch to an item, all operations or none.
pub(super) fn patch(request: &ItemRequest<'_>, id: &str) -> Result<Reply, ServiceError> {
    let store = &request.container.store;
    let schema = store.schema();
    let text = body::text(request)?;
    let patch = Patch::parse(&text)?;
    let address = partition_key::address(request, &schema)?;
    let id = address.item_id(request, id);
    let precondition = item_write::precondition(request.call.headers)?;
    let context = QueryContext { now: request.call.now.0, ..QueryContext::default() };
    let (partition, commit) = store.write(&address.epk, request.write_context(), |transaction| {
        let schema = transaction.schema().clone();
        transaction.patch(&address.epk, &id, precondition, |item| patch.apply(item, &schema, context))
    })?;
    let partition_response = PartitionResponse::new(request.container, &partition, commit.progress.clone());
    let written = commit.result.map_err(|error| partition_response.error(error.into()))?;
    let cost = item_write::write_charge(&written) + charge::patch(patch.operations.len());
    let reply = Reply::new(protocol::status::Status::OK)
        .charge(cost)
        .etag(item_write::etag_header(&written.item))
        .committed_at(commit.quorum_at);
    let minimal = item_write::is_minimal(request.call.headers)?;
    Ok(partition_response.add_headers(if minimal { reply } else { reply.json(written.item.body()) }))
}

impl Patch {
    /// Parses `{"operations":[…],"condition":…}`, or the list alone.
    pub(super) fn parse(body: &[u8]) -> Result<Patch, ServiceError> {
        let bad = |error: &dyn std::fmt::Display| ServiceError::bad_request(error.to_string());
        let request = PatchRequest::parse(body).map_err(|error| bad(&error))?;
        let read = |value: &RawValue| sql::value::parse(value.get().as_bytes());
        let operations = request.operations.into_iter().map(|operation| operation.try_map(read));
        let operations = operations.collect::<Result<_, _>>().map_err(|error| bad(&error))?;
        let condition = request.condition.as_deref().map(PatchCondition::parse).transpose();
        Ok(Patch { operations, condition: condition.map_err(super::query_plan::sql_error)? })
    }

    /// Applies the patch to `item` and returns the new version.
    pub(super) fn apply(
        &self,
        item: &Value,
        schema: &ContainerSchema,
        context: QueryContext,
    ) -> Result<Value, WriteError> {
        if self.condition.as_ref().is_some_and(|condition| !condition.is_met_by(item, &context)) {
            return Err(WriteError::ConditionFailed);
        }
        for operation in &self.operations {
            let checked = operation.check_targets(&schema.partition_key);
            checked.map_err(|error| WriteError::InvalidPatch(error.to_string()))?;
        }
        apply_patch(item, &self.operations).map_err(WriteError::InvalidPatch)
    }

    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }
}
