//! `POST docs` with the batch header: many operations in one request.
//!
//! An atomic batch is one transaction of one logical partition. The other form, which clients call
//! bulk, is a list of independent operations on one range.

use std::sync::Arc;
use std::time::Duration;

use protocol::batch::{envelope_status, parse_operations, write_results};
use protocol::headers as name;
use protocol::status::{Status, SubStatus};

use super::batch_operation::{
    BatchContext, FailedOperation, OperationResult, PreparedOperation, failed_result,
};
use super::partition_key;
use super::partition_response::PartitionResponse;
use super::scope::{Target, range_gone, target};
use super::{body, item_write};
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};
use engine::disk::DiskError;
use engine::store::Schema;

/// Bytes of items one answer may have: a hundred operations may each return a large one.
const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Runs the operations, all or nothing unless the client says otherwise.
pub(super) fn batch(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    let headers = request.call.headers;
    let schema = request.container.store.schema();
    let text = body::text(request)?;
    let operations = read_operations(&text, &schema, request.now_seconds())?;
    // One client leaves the header out and relies on rollback.
    let atomic = match headers.batch_atomic {
        Some(_) => RequestHeaders::flag(headers.batch_atomic, name::BATCH_ATOMIC)?,
        None => headers.partition_key.is_some(),
    };
    let how = BatchContext { now: request.call.now, minimal: item_write::is_minimal(headers)? };
    if atomic {
        run_atomic(request, &schema, operations, how)
    } else {
        run_independent(request, &schema, operations, how)
    }
}

/// An operation, or why it cannot be performed whatever is stored.
type ParsedOperation<'a> = Result<PreparedOperation<'a>, ServiceError>;

fn read_operations<'a>(
    body: &'a [u8],
    schema: &Arc<Schema>,
    now: u64,
) -> Result<Vec<ParsedOperation<'a>>, ServiceError> {
    let operations =
        parse_operations(body).map_err(|bad| ServiceError::backend(bad.status(), &bad.to_string()))?;
    Ok(operations.into_iter().map(|operation| PreparedOperation::new(operation, schema, now)).collect())
}

/// Why an atomic batch came to nothing.
enum BatchAbort {
    /// One of its operations failed, or the answer grew too large.
    Operation,
    /// All would have succeeded, but it could not be written down.
    NotDurable(DiskError),
}

impl From<DiskError> for BatchAbort {
    fn from(error: DiskError) -> BatchAbort {
        BatchAbort::NotDurable(error)
    }
}

fn run_atomic(
    request: &ItemRequest<'_>,
    schema: &Schema,
    operations: Vec<ParsedOperation<'_>>,
    how: BatchContext,
) -> Result<Reply, ServiceError> {
    let address = partition_key::address(request, schema)?;
    let store = &request.container.store;
    let mut performed: Vec<OperationResult> = Vec::with_capacity(operations.len());
    let mut bytes = 0;
    let (partition, commit) = store.write(&address.epk, request.write_timestamp(), |transaction| {
        for operation in &operations {
            let outcome = match operation {
                Ok(operation) => match operation.check_partition(request, schema, &address.epk) {
                    Ok(()) => operation.execute(transaction, &address.epk, how),
                    Err(error) => failed_result(&error),
                },
                Err(error) => failed_result(error),
            };
            let failed = is_failure(&outcome);
            bytes += body_bytes(&outcome);
            performed.push(outcome);
            if failed || bytes > RESPONSE_BYTES_MAX {
                return Err(BatchAbort::Operation);
            }
        }
        Ok(())
    })?;
    if bytes > RESPONSE_BYTES_MAX {
        return Err(response_too_large());
    }
    if let Err(BatchAbort::NotDurable(error)) = commit.result {
        return Err(error.into());
    }
    if commit.result.is_err() {
        // Nothing happened but the failure itself: the others depended on it.
        let failed_at = performed.len() - 1;
        performed[..failed_at].fill_with(OperationResult::failed_dependency);
        performed.resize_with(operations.len(), OperationResult::failed_dependency);
    }
    let partition_response = PartitionResponse::new(request.container, &partition, commit.reach.clone());
    Ok(reply(partition_response, &performed).committed_at(commit.quorum_at))
}

/// 413/3402: clients divide the batch and try again.
fn response_too_large() -> ServiceError {
    let message = format!(
        "The answer is too large: the items of one batch may have {RESPONSE_BYTES_MAX} bytes together. Send fewer \
         operations, or ask for no content."
    );
    ServiceError::backend(Status::REQUEST_ENTITY_TOO_LARGE, &message)
        .with_sub_status(SubStatus::RESPONSE_TOO_LARGE)
}

fn run_independent(
    request: &ItemRequest<'_>,
    schema: &Schema,
    operations: Vec<ParsedOperation<'_>>,
    how: BatchContext,
) -> Result<Reply, ServiceError> {
    let headers = request.call.headers;
    let go_on = RequestHeaders::flag(headers.batch_continue_on_error, name::BATCH_CONTINUE_ON_ERROR)?;
    let range = match target(request, schema)? {
        Target::Range(scope) => Some(scope),
        Target::Key(_) | Target::Everywhere(_) => None,
    };
    let store = &request.container.store;
    let mut performed: Vec<OperationResult> = Vec::with_capacity(operations.len());
    let mut last = range.as_ref().map(|scope| scope.partitions[0].partition());
    let mut quorum_at = Duration::ZERO;
    // A range in debt takes nothing of the list; one that gets there on the way refuses the rest.
    if let Some(partition) = &last {
        request.check_budget(partition)?;
    }
    let (mut stopped, mut bytes) = (false, 0);
    for operation in operations {
        if stopped {
            performed.push(OperationResult::failed_dependency());
            continue;
        }
        if bytes > RESPONSE_BYTES_MAX {
            performed.push(failed_result(&response_too_large()));
            continue;
        }
        let ready = operation.and_then(|operation| Ok((operation.address(request, schema)?, operation)));
        if let (Ok((address, _)), Some(range)) = (&ready, &range)
            && !range.within.contains(&address.epk)
        {
            // Its client has an old map. All operations of its logical partition go elsewhere, so none
            // of those that stay depends on it.
            performed.push(failed_result(&range_gone(&range.partitions[0].identity.id.to_string())));
            continue;
        }
        let admitted = ready.and_then(|(address, operation)| {
            request.check_budget(&address.partition)?;
            Ok((address, operation))
        });
        let outcome = match admitted {
            Ok((address, operation)) => {
                let written = store.write(&address.epk, request.write_timestamp(), |transaction| {
                    let outcome = operation.execute(transaction, &address.epk, how);
                    if is_failure(&outcome) { Err(FailedOperation(outcome)) } else { Ok(outcome) }
                });
                match written {
                    Ok((partition, commit)) => {
                        quorum_at = quorum_at.max(commit.quorum_at);
                        let outcome = commit.result.unwrap_or_else(|failed| failed.0);
                        request.charge_partition(&partition, outcome.request_charge);
                        last = Some(partition);
                        outcome
                    }
                    Err(closed) => failed_result(&closed.into()),
                }
            }
            Err(error) => failed_result(&error),
        };
        stopped = is_failure(&outcome) && !go_on;
        bytes += body_bytes(&outcome);
        performed.push(outcome);
    }
    let partition = last.unwrap_or_else(|| Arc::clone(&store.partitions()[0]));
    let reach = partition.peek(request.call.read_context).reach();
    let partition_response = PartitionResponse::new(request.container, &partition, reach);
    Ok(reply(partition_response, &performed).committed_at(quorum_at))
}

fn is_failure(outcome: &OperationResult) -> bool {
    outcome.status.is_error()
}

/// Bytes of the item that go into the answer.
fn body_bytes(outcome: &OperationResult) -> usize {
    outcome.resource_body.as_ref().map_or(0, |body| body.len())
}

fn reply(partition_response: PartitionResponse<'_>, performed: &[OperationResult]) -> Reply {
    let cost = performed.iter().map(|outcome| outcome.request_charge).sum();
    let reply = Reply::new(envelope_status(performed)).charge(cost);
    partition_response.add_headers(reply.json(write_results(performed).into()))
}
