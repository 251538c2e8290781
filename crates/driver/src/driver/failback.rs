//! Failback: regions and partitions that were unavailable are probed in the background, and get their traffic back.

use crate::diagnostics::ExecutionContext;
use crate::gateway::{AttemptLimits, GatewayOutcome, GatewayRequest};
use crate::transport::HeaderList;
use std::sync::Arc;
use std::time::{Duration, Instant};

use protocol::headers as names;
use protocol::status::Status;

use super::Inner;
use crate::operation::{Operation, OperationKind, Plane, Scope, Target};
use crate::pipeline::PipelineContext;
use crate::routing::{Endpoint, PartitionRegion, UNAVAILABLE_FOR};
use crate::telemetry::{update_account, update_breaker, update_breakers};

/// Probes of partitions that run at the same time.
const PROBES_MAX: usize = 32;
/// How long a probe may take. A region that needs longer does not get its traffic back.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// One round: probes regions and partitions that were unavailable for a while, and removes marks that have expired.
///
/// Cost: however many partitions have failed, a round takes [`PROBE_TIMEOUT`] for the regions, and as much for each
/// [`PROBES_MAX`] partitions; partitions of regions that do not respond are not probed.
pub(super) async fn probe_all(driver: Arc<Inner>) {
    let now = driver.clock.now();
    if driver.account.peek(|account| account.has_expired(now, UNAVAILABLE_FOR)) {
        update_account(&driver.account, |account| account.expire(now, UNAVAILABLE_FOR));
    }
    probe_regions(&driver, now).await;
    if driver.account.peek(|account| account.has_unavailable()) {
        // While a region is unavailable, the account may have moved its writes to another one.
        driver.refresh_account(driver.clock.after(PROBE_TIMEOUT)).await;
    }
    if driver.partitions.peek(|partitions| partitions.next_probe().is_none_or(|at| at > now)) {
        return;
    }
    let mut probes = update_breakers(&driver.partitions, |partitions| partitions.sweep(now).take_probes(now));
    let account = driver.account.snapshot();
    probes.retain(|key| !account.is_unavailable(&key.region, true));
    for batch in probes.chunks(PROBES_MAX) {
        futures::future::join_all(batch.iter().map(|key| probe_partition(&driver, key))).await;
    }
}

/// Asks regions that could not be reached: one that responds gets its traffic back.
async fn probe_regions(driver: &Inner, now: Instant) {
    let delay = driver.settings.circuit_breaker.unavailability_probe_delay;
    let unreachable = driver.account.peek(|account| account.unreachable_for(now, delay));
    let until = driver.clock.after(PROBE_TIMEOUT);
    let probes = unreachable.iter().map(async |endpoint| {
        let region = endpoint.region();
        if let GatewayOutcome::Success(_) = read_account(driver, endpoint, until).await {
            update_account(&driver.account, |account| account.mark_available(region));
        } else {
            let now = driver.clock.now();
            driver.account.update(|account| account.probe_failed(region, now));
        }
    });
    futures::future::join_all(probes).await;
}

/// Whether an endpoint responds to anything before `until`.
pub(super) async fn responds(driver: &Inner, endpoint: &Endpoint, until: Instant) -> bool {
    match read_account(driver, endpoint, until).await {
        GatewayOutcome::Success(_) | GatewayOutcome::ServiceError(_) => true,
        GatewayOutcome::NoResponse { .. } | GatewayOutcome::DeadlineExceeded { .. } => false,
    }
}

/// Reads the account's properties at an endpoint, which costs no request units.
async fn read_account(driver: &Inner, endpoint: &Endpoint, until: Instant) -> GatewayOutcome {
    let operation = Operation::new(OperationKind::Read, Target::account());
    let limits = AttemptLimits::of(&driver.settings.operation, Plane::Metadata);
    let request = GatewayRequest {
        operation: &operation,
        endpoint,
        headers: HeaderList::new(),
        context: ExecutionContext::Probe,
        deadline: until,
        progress: None,
    };
    driver.gateway.execute(request, &limits).await.outcome
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
        deadline: driver.clock.after(PROBE_TIMEOUT),
        progress: None,
    };
    match driver.gateway.execute(request, &limits).await.outcome {
        GatewayOutcome::Success(_) => {
            update_breaker(&driver.partitions, key, |partitions| partitions.probe_succeeded(key));
        }
        // The partition no longer exists, so neither does anything to fail back to.
        GatewayOutcome::ServiceError(response)
            if matches!(response.status, Status::GONE | Status::NOT_FOUND) =>
        {
            update_breaker(&driver.partitions, key, |partitions| partitions.record_success(key));
        }
        GatewayOutcome::ServiceError(_)
        | GatewayOutcome::NoResponse { .. }
        | GatewayOutcome::DeadlineExceeded { .. } => {}
    }
}
