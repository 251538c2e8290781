//! Batches, `POST docs` with the batch header: many operations in one request.
//!
//! An atomic batch is one transaction of one logical partition. The other form, which SDKs call bulk, is a list
//! of independent operations on one partition key range. Most clients send JSON, the .NET SDK sends HybridRow
//! records; each gets its results as it sent its operations.

use std::sync::Arc;
use std::time::Duration;

use protocol::batch::{BatchEncoding, BatchOperationType, BatchRequest, envelope_status};
use protocol::headers as name;
use protocol::status::{Status, SubStatus};

use super::batch_operation::{
    BatchContext, FailedOperation, OperationResult, PreparedOperation, failed_result,
};
use super::partition_key;
use super::partition_response::{PartitionResponse, check_session};
use super::scope::{range_gone, range_scope};
use super::{body, encryption, item_write};
use crate::handlers::ItemRequest;
use crate::request::RequestHeaders;
use crate::response::{Reply, ServiceError};
use engine::disk::DiskError;
use engine::store::{ContainerSchema, Partition, PartitionView, Progress};

/// Bytes of items that one response may have: each of a hundred operations may return a large one.
const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Runs the operations of a batch, as a transaction unless the client requests otherwise.
pub(super) fn batch(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    let headers = request.call.headers;
    let schema = request.container.store.schema();
    let body = body::text(request)?;
    let BatchRequest { encoding, operations } =
        BatchRequest::parse(&body).map_err(|bad| ServiceError::backend(bad.status(), &bad.to_string()))?;
    let writes_item =
        |kind: BatchOperationType| !matches!(kind, BatchOperationType::Read | BatchOperationType::Delete);
    if operations.iter().any(|operation| writes_item(operation.operation_type)) {
        encryption::check_encrypted(request)?;
    }
    let has_reads = operations.iter().any(|operation| operation.operation_type == BatchOperationType::Read);
    let now = request.now_seconds();
    let operations =
        operations.into_iter().map(|operation| PreparedOperation::new(operation, &schema, now)).collect();
    // One SDK omits the header and relies on rollback.
    let atomic = match headers.batch_atomic {
        Some(_) => RequestHeaders::flag(headers.batch_atomic, name::BATCH_ATOMIC)?,
        None => headers.partition_key.is_some(),
    };
    let context = BatchContext { now: request.call.now, minimal: item_write::is_minimal(headers)? };
    let batch = Batch { request, schema: &schema, operations, has_reads, encoding, context };
    if atomic { batch.run_atomic() } else { batch.run_independent() }
}

/// A prepared operation, or the error of one that is invalid in itself.
type ParsedOperation<'a> = Result<PreparedOperation<'a>, ServiceError>;

/// The operations of one request, ready to be executed.
struct Batch<'a> {
    request: &'a ItemRequest<'a>,
    schema: &'a ContainerSchema,
    operations: Vec<ParsedOperation<'a>>,
    /// Whether an operation reads, so that the session token of the request counts.
    has_reads: bool,
    encoding: BatchEncoding,
    context: BatchContext,
}

/// Why an atomic batch was rolled back.
enum BatchAbort {
    /// One of its operations failed, or the response became too large.
    Operation,
    /// All operations succeeded, but the batch could not be written to disk.
    NotDurable(DiskError),
}

impl From<DiskError> for BatchAbort {
    fn from(error: DiskError) -> BatchAbort {
        BatchAbort::NotDurable(error)
    }
}

impl Batch<'_> {
    fn run_atomic(&self) -> Result<Reply, ServiceError> {
        let Batch { request, schema, operations, .. } = self;
        let address = partition_key::address(request, schema)?;
        self.check_session(&address.partition)?;
        let store = &request.container.store;
        let mut results: Vec<OperationResult> = Vec::with_capacity(operations.len());
        let mut bytes = 0;
        let (partition, commit) = store.write(&address.epk, request.write_context(), |transaction| {
            for operation in operations {
                let outcome = match operation {
                    Ok(operation) => match operation.check_partition(request, schema, &address.epk) {
                        Ok(()) => operation.execute(transaction, &address.epk, self.context),
                        Err(error) => failed_result(&error),
                    },
                    Err(error) => failed_result(error),
                };
                let failed = is_failure(&outcome);
                bytes += body_bytes(&outcome);
                results.push(outcome);
                if failed || bytes > RESPONSE_BYTES_MAX {
                    return Err(BatchAbort::Operation);
                }
            }
            Ok(())
        })?;
        let too_large = bytes > RESPONSE_BYTES_MAX;
        match commit.result {
            Ok(()) => {}
            Err(BatchAbort::NotDurable(error)) => return Err(error.into()),
            Err(BatchAbort::Operation) => {
                // The transaction was rolled back, so the other operations report a failed dependency.
                let failed_at = results.len() - 1;
                results[..failed_at].fill_with(OperationResult::failed_dependency);
                if too_large {
                    let beyond = || failed_result(&response_too_large());
                    results.truncate(failed_at);
                    results.resize_with(operations.len(), beyond);
                } else {
                    results.resize_with(operations.len(), OperationResult::failed_dependency);
                }
            }
        }
        let reply = self.reply(&partition, commit.progress.clone(), &results).committed_at(commit.quorum_at);
        Ok(match too_large {
            true => Reply { status: Status::REQUEST_ENTITY_TOO_LARGE, ..reply }
                .sub_status(SubStatus::RESPONSE_TOO_LARGE),
            false => reply,
        })
    }

    fn run_independent(self) -> Result<Reply, ServiceError> {
        let Batch { request, schema, context, .. } = self;
        let headers = request.call.headers;
        let continue_on_error =
            RequestHeaders::flag(headers.batch_continue_on_error, name::BATCH_CONTINUE_ON_ERROR)?;
        // Each operation is authorized by its own partition key, when its address is made.
        let range = range_scope(request)?;
        for partition in range.iter().flat_map(|scope| &scope.partitions) {
            self.check_session(partition)?;
        }
        let store = &request.container.store;
        let mut results: Vec<OperationResult> = Vec::with_capacity(self.operations.len());
        let mut last = range.as_ref().map(|scope| scope.partitions[0].partition());
        let mut quorum_at = Duration::ZERO;
        // A range without RU budget rejects the whole list; one that uses it up on the way rejects the rest.
        if let Some(partition) = &last {
            request.check_budget(partition)?;
        }
        let (mut stopped, mut bytes) = (false, 0);
        for operation in &self.operations {
            if stopped {
                results.push(OperationResult::failed_dependency());
                continue;
            }
            if bytes > RESPONSE_BYTES_MAX {
                results.push(failed_result(&response_too_large()));
                continue;
            }
            let ready = operation.as_ref().map_err(Clone::clone);
            let ready = ready.and_then(|operation| Ok((operation.address(request, schema)?, operation)));
            if let (Ok((address, _)), Some(range)) = (&ready, &range)
                && !range.within.contains(&address.epk)
            {
                // The client has an old routing map. All operations of this logical partition have moved, so none
                // of the remaining ones depends on it.
                results.push(failed_result(&range_gone(&range.partitions[0].identity.id.to_string())));
                continue;
            }
            let admitted = ready.and_then(|(address, operation)| {
                request.check_budget(&address.partition)?;
                Ok((address, operation))
            });
            let outcome = match admitted {
                Ok((address, operation)) => {
                    let written = store.write(&address.epk, request.write_context(), |transaction| {
                        let outcome = operation.execute(transaction, &address.epk, context);
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
            stopped = is_failure(&outcome) && !continue_on_error;
            bytes += body_bytes(&outcome);
            results.push(outcome);
        }
        let partition = last.unwrap_or_else(|| Arc::clone(&store.partitions()[0]));
        let reach = partition.head(request.call.read_context).progress();
        Ok(self.reply(&partition, reach, &results).committed_at(quorum_at))
    }

    /// Refuses a batch with reads whose session token this replica has not reached.
    fn check_session(&self, partition: &PartitionView) -> Result<(), ServiceError> {
        if !self.has_reads {
            return Ok(());
        }
        let progress = partition.progress();
        let partition_response = PartitionResponse::new(self.request.container, partition, progress.clone());
        check_session(&self.request.call, partition, &progress)
            .map_err(|error| partition_response.error(error))
    }

    fn reply(&self, partition: &Partition, progress: Progress, results: &[OperationResult]) -> Reply {
        let partition_response = PartitionResponse::new(self.request.container, partition, progress);
        let cost = results.iter().map(|outcome| outcome.request_charge).sum();
        let reply = Reply::new(envelope_status(results)).charge(cost);
        let body = self.encoding.write_results(results).into();
        partition_response.add_headers(match self.encoding {
            BatchEncoding::Json => reply.json(body),
            BatchEncoding::HybridRow => Reply { body, ..reply },
        })
    }
}

/// 413/3402: the items would make the response too large; clients divide the batch and try again.
fn response_too_large() -> ServiceError {
    let message = format!(
        "The response is too large: the items of one batch may have {RESPONSE_BYTES_MAX} bytes together. Send fewer \
         operations, or ask for no content."
    );
    ServiceError::backend(Status::REQUEST_ENTITY_TOO_LARGE, &message)
        .with_sub_status(SubStatus::RESPONSE_TOO_LARGE)
}

fn is_failure(result: &OperationResult) -> bool {
    result.status.is_error()
}

/// Bytes of the item in an operation's result.
fn body_bytes(outcome: &OperationResult) -> usize {
    outcome.resource_body.as_ref().map_or(0, |body| body.len())
}
