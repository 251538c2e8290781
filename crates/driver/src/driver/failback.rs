//! Background: regions and partitions that were left are looked at again, and get their traffic back.

use crate::diagnostics::ExecutionContext;
use crate::gateway::{AttemptLimits, GatewayOutcome, GatewayRequest};
use crate::transport::HeaderList;
use std::sync::Arc;
use std::time::Instant;

use protocol::headers as names;
use protocol::status::Status;

use super::Inner;
use crate::operation::{Operation, OperationKind, Plane, Scope, Target};
use crate::routing::{PartitionRegion, UNAVAILABLE_FOR};

/// Probes under way at once.
const PROBES_MAX: usize = 8;

/// One look: forgets what is old, and probes partitions that have been left for a while.
pub(crate) async fn look(driver: Arc<Inner>) {
    let now = driver.clock.now();
    if driver.account.peek(|account| account.has_expired(now, UNAVAILABLE_FOR)) {
        driver.account.update(|account| account.expire(now, UNAVAILABLE_FOR));
    }
    probe_regions(&driver, now).await;
    if driver.partitions.peek(|partitions| partitions.next_due().is_none_or(|due| due > now)) {
        return;
    }
    let due = driver.partitions.update_with(|partitions| partitions.sweep(now).take_probes(now));
    for batch in due.chunks(PROBES_MAX) {
        futures::future::join_all(batch.iter().map(|key| probe(&driver, key))).await;
    }
}

/// Asks regions that could not be reached for the account: one that answers gets its traffic back.
async fn probe_regions(driver: &Inner, now: Instant) {
    let delay = driver.settings.circuit_breaker.unavailability_probe_delay;
    let left = driver.account.peek(|account| account.left_for(now, delay));
    let probes = left.iter().map(async |endpoint| {
        if driver.fetch_account_from(endpoint).await.is_ok() {
            driver.account.update(|account| account.mark_available(endpoint.region()));
        }
    });
    futures::future::join_all(probes).await;
}

/// Reads a little of a partition in the region it was left in.
async fn probe(driver: &Inner, key: &PartitionRegion) {
    let account = driver.account.snapshot();
    let Some(endpoint) = account.all().find(|endpoint| endpoint.region() == &key.region) else { return };
    let operation = Operation::new(OperationKind::ReadFeed, Target::items(&key.partition.container.name))
        .with_scope(Scope::Partition(key.partition.range));
    let limits = AttemptLimits::of(&driver.settings.operation, Plane::Data);
    let mut headers = HeaderList::new();
    headers.set(names::PARTITION_KEY_RANGE_ID, &key.partition.range.to_string());
    headers.set_fixed(names::MAX_ITEM_COUNT, "1");
    let request = GatewayRequest {
        operation: &operation,
        endpoint,
        headers,
        context: ExecutionContext::Probe,
        deadline: driver.clock.now() + limits.request_timeout,
    };
    match driver.gateway.execute(request, &limits).await.outcome {
        GatewayOutcome::Success(_) => driver.partitions.update(|partitions| partitions.probe_succeeded(key)),
        // The partition is no more: there is nothing to come back to.
        GatewayOutcome::ServiceError(answer) if matches!(answer.status, Status::GONE | Status::NOT_FOUND) => {
            driver.partitions.update(|partitions| partitions.record_success(key));
        }
        GatewayOutcome::ServiceError(_)
        | GatewayOutcome::NoResponse { .. }
        | GatewayOutcome::DeadlineExceeded { .. } => {}
    }
}
