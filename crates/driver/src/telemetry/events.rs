//! Events about what all operations of a driver share: regions, circuit breakers, throttling.
//!
//! One function per event. `docs/telemetry.md` lists them, and a test compares the two.

use std::time::Duration;

use protocol::status::{Status, SubStatus};

use super::names::{ATTEMPT_TARGET, OPERATION_TARGET, ROUTING_TARGET};
use crate::routing::{AccountState, BreakerState, Diversion, Endpoint, PartitionRegion, Region, Unavailable};

/// Tells that the service throttled a request and that it is repeated after `delay`. Only the first time of an attempt
/// is a warning: the others would say the same.
pub(crate) fn throttled(
    endpoint: &Endpoint,
    (Status(status), SubStatus(sub_status)): (Status, SubStatus),
    retries: u32,
    delay: Duration,
) {
    let region = endpoint.region().as_str();
    if retries <= 1 {
        tracing::warn!(target: ATTEMPT_TARGET, region, status, sub_status, retries, ?delay, "request throttled");
    } else {
        tracing::debug!(
            target: ATTEMPT_TARGET,
            region,
            status,
            sub_status,
            retries,
            ?delay,
            "request throttled again"
        );
    }
}

/// Tells what follows an attempt that did not end its operation.
pub(crate) fn retrying(region: &Region, reason: &'static str, delay: Duration) {
    tracing::debug!(target: OPERATION_TARGET, region = region.as_str(), reason, ?delay, "attempt is followed by another");
}

/// Tells that an attempt avoids the region that would have been chosen, and why.
pub(crate) fn diverted(region: &Region, diversion: &Diversion) {
    tracing::debug!(
        target: OPERATION_TARGET,
        region = region.as_str(),
        avoided = diversion.region.as_str(),
        cause = %diversion.cause,
        "attempt goes to another region"
    );
}

/// Tells that a region gets no requests, or no writes, for a while.
pub(crate) fn region_unavailable(region: &Region, what: Unavailable) {
    let what = match what {
        Unavailable::Writes => "writes",
        Unavailable::All => "reads and writes",
    };
    tracing::warn!(target: ROUTING_TARGET, region = region.as_str(), what, "region marked unavailable");
}

/// Tells that a region gets its requests back: it has responded, or is tried again after a while.
pub(crate) fn region_available(region: &Region) {
    tracing::info!(target: ROUTING_TARGET, region = region.as_str(), "region gets requests again");
}

/// Tells the regions of an account that was discovered, or has other regions than before.
pub(crate) fn regions_changed(account: &AccountState) {
    let names = |endpoints: &[Endpoint]| {
        endpoints.iter().map(|endpoint| endpoint.region().to_string()).collect::<Vec<_>>()
    };
    tracing::info!(
        target: ROUTING_TARGET,
        reads = ?names(account.reads()),
        writes = ?names(account.writes()),
        "account has these regions"
    );
}

/// Tells that the circuit breaker of a partition in a region opened, half opened or closed; nothing if it did not.
pub(crate) fn breaker_changed(key: &PartitionRegion, before: BreakerState, after: BreakerState) {
    let region = key.region.as_str();
    let container = &key.partition.container.name;
    let (partition_range, access) = (key.partition.range.0, key.access.name());
    match (before, after) {
        (BreakerState::Open { .. }, BreakerState::Open { .. })
        | (BreakerState::HalfOpen, BreakerState::HalfOpen)
        | (BreakerState::Closed, BreakerState::Closed) => {}
        (BreakerState::Closed | BreakerState::HalfOpen, BreakerState::Open { .. }) => {
            tracing::warn!(target: ROUTING_TARGET, region, %container, partition_range, access, "circuit breaker opened");
        }
        (BreakerState::Closed | BreakerState::Open { .. }, BreakerState::HalfOpen) => {
            tracing::info!(target: ROUTING_TARGET, region, %container, partition_range, access, "circuit breaker half open");
        }
        (BreakerState::Open { .. } | BreakerState::HalfOpen, BreakerState::Closed) => {
            tracing::info!(target: ROUTING_TARGET, region, %container, partition_range, access, "circuit breaker closed");
        }
    }
}
