//! How a processor is doing, at one moment.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::crew::Counts;
use super::held::HeldLease;
use super::lease::{Lease, Report};
use crate::FeedRange;

/// How an instance is doing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProcessorStatus {
    /// What it is called in leases.
    pub instance: String,
    /// The leases it has, in the order of their ids.
    pub leases: Vec<LeaseStatus>,
    /// Changes that were handled or given up.
    pub handled: u64,
    /// Changes that went to the dead-letter hook.
    pub dead_letters: u64,
    /// Attempts of handlers and requests that failed.
    pub failures: u64,
    /// What keeps it from sharing leases, if something does.
    pub last_error: Option<String>,
}

/// How a lease is doing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LeaseStatus {
    /// Its id.
    pub id: String,
    /// Its feed range.
    pub range: FeedRange,
    /// The instance that has it.
    pub owner: Option<String>,
    /// The instance that asks for it.
    pub wanted_by: Option<String>,
    /// How far its changes have been handled.
    pub continuation: String,
    /// Which rewind it has followed; one, if there was none.
    pub generation: u64,
    /// Changes that are yet to be handled, about, when its owner last looked.
    pub lag: Option<u64>,
    /// Failures in a row.
    pub failures: u64,
    /// The last of them.
    pub last_error: Option<String>,
}

impl ProcessorStatus {
    pub(super) fn new(instance: String, leases: Vec<LeaseStatus>, counts: &Counts) -> ProcessorStatus {
        ProcessorStatus {
            instance,
            leases,
            handled: counts.handled.load(Ordering::Relaxed),
            dead_letters: counts.dead_letters.load(Ordering::Relaxed),
            failures: counts.failures.load(Ordering::Relaxed),
            last_error: counts.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Changes that are yet to be handled under its leases, about, as far as it is known.
    pub fn lag(&self) -> u64 {
        self.leases.iter().filter_map(|lease| lease.lag).sum()
    }
}

impl LeaseStatus {
    pub(super) fn of_stored(lease: Lease) -> LeaseStatus {
        let report = lease.report.clone();
        LeaseStatus::new(lease, report)
    }

    pub(super) fn of_held(held: &HeldLease) -> LeaseStatus {
        LeaseStatus::new(held.lease(), held.report())
    }

    fn new(lease: Lease, report: Report) -> LeaseStatus {
        LeaseStatus {
            range: lease.range(),
            continuation: lease.position.text(),
            id: lease.id,
            owner: lease.owner,
            wanted_by: lease.wanted,
            generation: lease.generation,
            lag: report.lag,
            failures: report.failures,
            last_error: report.last_error,
        }
    }
}
