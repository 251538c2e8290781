//! The status of a processor instance and of its leases at one point in time.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::lease::{Lease, LeaseReport};
use super::owned_lease::OwnedLease;
use super::worker_context::ProcessorCounters;
use crate::FeedRange;

/// The status of a processor instance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProcessorStatus {
    /// The unique name of the instance, as leases show it.
    pub instance: String,
    /// The leases that it owns, in the order of their ids.
    pub leases: Vec<LeaseStatus>,
    /// The number of changes that were handled or became dead letters.
    pub handled: u64,
    /// The number of changes that went to the dead-letter hook.
    pub dead_letters: u64,
    /// The number of handler calls, and of requests for changes, that failed. Requests for leases are not counted.
    pub failures: u64,
    /// The error of the last attempt to acquire leases, if it failed.
    pub last_error: Option<String>,
}

/// The status of a lease.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeaseStatus {
    /// The id of the lease item.
    pub id: String,
    /// The feed range whose changes its owner handles.
    pub range: FeedRange,
    /// The instance that owns the lease.
    pub owner: Option<String>,
    /// The instance that has requested the lease from its owner.
    pub wanted_by: Option<String>,
    /// The position in the feed up to which changes have been handled.
    pub continuation: String,
    /// The generation of its position: 1 at first, and one more with each rewind.
    pub generation: u64,
    /// The owner's last estimate of how many changes are not handled yet.
    pub lag: Option<u64>,
    /// The number of consecutive failures.
    pub failures: u64,
    /// The message of the last failure.
    pub last_error: Option<String>,
}

impl ProcessorStatus {
    pub(super) fn new(
        instance: String,
        leases: Vec<LeaseStatus>,
        counters: &ProcessorCounters,
    ) -> ProcessorStatus {
        ProcessorStatus {
            instance,
            leases,
            handled: counters.handled.load(Ordering::Relaxed),
            dead_letters: counters.dead_letters.load(Ordering::Relaxed),
            failures: counters.failures.load(Ordering::Relaxed),
            last_error: counters.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// An estimate of how many changes under its leases are not handled yet; leases without an estimate count as zero.
    pub fn lag(&self) -> u64 {
        self.leases.iter().filter_map(|lease| lease.lag).sum()
    }
}

impl LeaseStatus {
    pub(super) fn of_stored(lease: Lease) -> LeaseStatus {
        let report = lease.report.clone();
        LeaseStatus::new(lease, report)
    }

    pub(super) fn of_owned(owned: &OwnedLease) -> LeaseStatus {
        LeaseStatus::new(owned.lease(), owned.report())
    }

    fn new(lease: Lease, report: LeaseReport) -> LeaseStatus {
        LeaseStatus {
            range: lease.range(),
            continuation: lease.position.display_text(),
            id: lease.id,
            owner: lease.owner,
            wanted_by: lease.requested_by,
            generation: lease.generation,
            lag: report.lag,
            failures: report.failures,
            last_error: report.last_error,
        }
    }
}
