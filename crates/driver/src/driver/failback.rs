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
use crate::pipeline::update_breaker;
use crate::routing::{Endpoint, PartitionRegion, Region, UNAVAILABLE_FOR};
use crate::telemetry::events;

/// Probes that run at the same time.
const PROBES_MAX: usize = 8;

/// One round: removes marks that have expired, and probes regions and partitions that were unavailable for a while.
pub(super) async fn probe_all(driver: Arc<Inner>) {
    let now = driver.clock.now();
    if driver.account.peek(|account| account.has_expired(now, UNAVAILABLE_FOR)) {
        let regions = driver.account.update_with(|account| {
            let next = account.expire(now, UNAVAILABLE_FOR);
            let is_back = |region: &Region| {
                account.is_unavailable(region, false) && !next.is_unavailable(region, false)
            };
            let regions: Vec<Region> =
                account.all().map(Endpoint::region).filter(|region| is_back(region)).cloned().collect();
            (next, regions)
        });
        regions.iter().for_each(events::region_available);
    }
    probe_regions(&driver, now).await;
    if driver.partitions.peek(|partitions| partitions.next_probe().is_none_or(|at| at > now)) {
        return;
    }
    let (probes, changes) = driver.partitions.update_with(|partitions| {
        let (next, probes) = partitions.sweep(now).take_probes(now);
        let changes: Vec<_> = partitions
            .breakers()
            .map(|(key, breaker)| (key.clone(), breaker.state, next.state_of(key)))
            .collect();
        (next, (probes, changes))
    });
    for (key, before, after) in &changes {
        events::breaker_changed(key, *before, *after);
    }
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
            events::region_available(endpoint.region());
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
        deadline: driver.clock.now() + limits.request_timeout,
    };
    match driver.gateway.execute(request, &limits).await.outcome {
        GatewayOutcome::Success(_) => {
            update_breaker(driver, key, |partitions| partitions.probe_succeeded(key));
        }
        // The partition no longer exists, so neither does anything to fail back to.
        GatewayOutcome::ServiceError(response)
            if matches!(response.status, Status::GONE | Status::NOT_FOUND) =>
        {
            update_breaker(driver, key, |partitions| partitions.record_success(key));
        }
        GatewayOutcome::ServiceError(_)
        | GatewayOutcome::NoResponse { .. }
        | GatewayOutcome::DeadlineExceeded { .. } => {}
    }
}
