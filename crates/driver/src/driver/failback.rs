//! Failback: regions and partitions that were unavailable are probed in the background, and get their traffic back.

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

/// Probes that run at the same time.
const PROBES_MAX: usize = 8;

/// One round: removes marks that have expired, and probes regions and partitions that were unavailable for a while.
pub(super) async fn probe_all(driver: Arc<Inner>) {
    let now = driver.clock.now();
    if driver.account.peek(|account| account.has_expired(now, UNAVAILABLE_FOR)) {
        driver.account.update(|account| account.expire(now, UNAVAILABLE_FOR));
    }
    probe_regions(&driver, now).await;
    if driver.partitions.peek(|partitions| partitions.next_probe().is_none_or(|at| at > now)) {
        return;
    }
    let probes = driver.partitions.update_with(|partitions| partitions.sweep(now).take_probes(now));
    for batch in probes.chunks(PROBES_MAX) {
        futures::future::join_all(batch.iter().map(|key| probe_partition(&driver, key))).await;
    }
}

/// Reads the account's properties in regions that could not be reached: one that responds gets its traffic back.
async fn probe_regions(driver: &Inner, now: Instant) {
    let delay = driver.settings.circuit_breaker.unavailability_probe_delay;
    let unreachable = driver.account.peek(|account| account.unreachable_for(now, delay));
    let probes = unreachable.iter().map(async |endpoint| {
        if driver.fetch_account_from(endpoint).await.is_ok() {
            driver.account.update(|account| account.mark_available(endpoint.region()));
        }
    });
    futures::future::join_all(probes).await;
}

/// Reads one item of a partition in the region where it failed.
async fn probe_partition(driver: &Inner, key: &PartitionRegion) {
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
        deadline: driver.clock.after(limits.request_timeout),
    };
    match driver.gateway.execute(request, &limits).await.outcome {
        GatewayOutcome::Success(_) => driver.partitions.update(|partitions| partitions.probe_succeeded(key)),
        // The partition no longer exists, so neither does anything to fail back to.
        GatewayOutcome::ServiceError(response)
            if matches!(response.status, Status::GONE | Status::NOT_FOUND) =>
        {
            driver.partitions.update(|partitions| partitions.record_success(key));
        }
        GatewayOutcome::ServiceError(_)
        | GatewayOutcome::NoResponse { .. }
        | GatewayOutcome::DeadlineExceeded { .. } => {}
    }
}
