//! `POST docs` with the batch header: many operations in one request.
//!
//! An atomic batch is one transaction of one logical partition. The other form, which clients call
//! bulk, is a list of independent operations on one range.

use std::sync::Arc;
use std::time::Duration;

use protocol::headers as name;
use protocol::status::{Status, SubStatus};
use sql::Value;

use super::batch_operation::{BatchOperation, Performed, write_results};
use super::partition_key::{self, Address};
use super::served::Served;
use super::write_reply;
use crate::gateway::{Reply, RequestHeaders, ServiceError};
use crate::handlers::ItemRequest;
use crate::store::{ITEM_BYTES_MAX, Schema};

/// Operations one request may have.
const OPERATIONS_MAX: usize = 100;
/// Bytes of items one answer may have: a hundred operations may each return a large one.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Runs the operations, all or nothing unless the client says otherwise.
pub(super) fn batch(request: &ItemRequest<'_>) -> Result<Reply, ServiceError> {
    let headers = &request.call.headers;
    let schema = request.container.store.schema();
    let operations = read_operations(&request.call.body)?;
    // One client leaves the header out and relies on rollback.
    let atomic = match headers.batch_atomic {
        Some(_) => RequestHeaders::flag(headers.batch_atomic, name::BATCH_ATOMIC)?,
        None => headers.partition_key.is_some(),
    };
    let minimal = write_reply::is_minimal(headers)?;
    if atomic {
        let address = partition_key::address(request, &schema)?;
        return run_atomic(request, &address, &operations, minimal);
    }
    run_each(request, &schema, &operations, minimal)
}

fn read_operations(body: &[u8]) -> Result<Vec<BatchOperation>, ServiceError> {
    if body.len() > ITEM_BYTES_MAX {
        let message = format!(
            "Request size is too large; a batch may have {ITEM_BYTES_MAX} bytes, this one has {}",
            body.len()
        );
        return Err(ServiceError::listed(Status::REQUEST_ENTITY_TOO_LARGE, &message));
    }
    let payload = sql::value::parse(body).map_err(|error| {
        ServiceError::bad_request(format!("The batch payload is not valid JSON: {error}"))
    })?;
    let list =
        payload.as_array().ok_or_else(|| ServiceError::bad_request("A batch is a list of operations."))?;
    match list.len() {
        0 => Err(ServiceError::bad_request("Batch request has no operations.")),
        1..=OPERATIONS_MAX => list.iter().map(|operation: &Value| BatchOperation::read(operation)).collect(),
        _ => Err(ServiceError::bad_request("Batch request has more operations than what is supported.")),
    }
}

fn run_atomic(
    request: &ItemRequest<'_>,
    address: &Address,
    operations: &[BatchOperation],
    minimal: bool,
) -> Result<Reply, ServiceError> {
    let store = &request.container.store;
    let mut performed: Vec<Performed> = Vec::with_capacity(operations.len());
    let mut bytes = 0;
    let (partition, commit) = store.write(&address.epk, request.moment(), |transaction| {
        for operation in operations {
            let outcome = operation.perform(transaction, &address.epk, request.call.now);
            let failed = outcome.is_failure();
            bytes += outcome.body_bytes(minimal);
            performed.push(outcome);
            if failed || bytes > ANSWER_BYTES_MAX {
                return Err(());
            }
        }
        Ok(())
    });
    if bytes > ANSWER_BYTES_MAX {
        return Err(answer_too_large());
    }
    if commit.result.is_err() {
        // Nothing happened but the failure itself: the others depended on it.
        let failed_at = performed.len() - 1;
        performed[..failed_at].iter_mut().for_each(|outcome| *outcome = Performed::skipped());
        performed.resize_with(operations.len(), Performed::skipped);
    }
    let served = Served::by(&request.container, &partition, commit.lsn);
    Ok(reply(served, &performed, minimal).committed_at(commit.quorum_at))
}

/// 413/3402: clients divide the batch and try again.
fn answer_too_large() -> ServiceError {
    let message = format!(
        "The answer is too large: the items of one batch may have {ANSWER_BYTES_MAX} bytes together. Send fewer \
         operations, or ask for no content."
    );
    ServiceError::listed(Status::REQUEST_ENTITY_TOO_LARGE, &message)
        .with_sub_status(SubStatus::RESPONSE_TOO_LARGE)
}

fn run_each(
    request: &ItemRequest<'_>,
    schema: &Arc<Schema>,
    operations: &[BatchOperation],
    minimal: bool,
) -> Result<Reply, ServiceError> {
    let headers = &request.call.headers;
    let go_on = RequestHeaders::flag(headers.batch_continue_on_error, name::BATCH_CONTINUE_ON_ERROR)?;
    let range = match super::scope::target(request, schema)? {
        super::scope::Target::Range(scope) => Some(scope),
        _ => None,
    };
    let store = &request.container.store;
    let mut performed: Vec<Performed> = Vec::with_capacity(operations.len());
    let mut last = range.as_ref().map(|scope| scope.partitions[0].partition());
    let mut quorum_at = Duration::ZERO;
    let (mut stopped, mut bytes) = (false, 0);
    for operation in operations {
        if stopped {
            performed.push(Performed::skipped());
            continue;
        }
        if bytes > ANSWER_BYTES_MAX {
            performed.push(Performed::refused(&answer_too_large()));
            continue;
        }
        let outcome = match operation.address(request, schema) {
            Ok(address) => {
                let (partition, commit) = store.write(&address.epk, request.moment(), |transaction| {
                    let outcome = operation.perform(transaction, &address.epk, request.call.now);
                    if outcome.is_failure() { Err(outcome) } else { Ok(outcome) }
                });
                last = Some(partition);
                quorum_at = quorum_at.max(commit.quorum_at);
                commit.result.unwrap_or_else(|failed| failed)
            }
            Err(refusal) => Performed::refused(&refusal),
        };
        stopped = outcome.is_failure() && !go_on;
        bytes += outcome.body_bytes(minimal);
        performed.push(outcome);
    }
    let partition = last.unwrap_or_else(|| Arc::clone(&store.partitions()[0]));
    let lsn = partition.newest().lsn;
    let served = Served::by(&request.container, &partition, lsn);
    Ok(reply(served, &performed, minimal).committed_at(quorum_at))
}

fn reply(served: Served<'_>, performed: &[Performed], minimal: bool) -> Reply {
    let failed = performed.iter().any(Performed::is_failure);
    let status = if failed { Status::MULTI_STATUS } else { Status::OK };
    let cost = performed.iter().map(Performed::charge).sum();
    served.reply(Reply::new(status).charge(cost).json(write_results(performed, minimal).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_operations_is_bounded_on_both_sides() {
        let message = |body: &str| {
            read_operations(body.as_bytes()).err().map(|refusal| refusal.message).unwrap_or_default()
        };
        assert!(message("[]").contains("Batch request has no operations."));
        let many = format!("[{}]", vec![r#"{"operationType":"Read","id":"1"}"#; 101].join(","));
        assert!(message(&many).contains("Batch request has more operations than what is supported."));
        assert!(message("{}").contains("list"));
    }
}
