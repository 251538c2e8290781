//! A lease that this instance owns.
//!
//! All writes of this instance to a lease go through [`OwnedLease`], one at a time, so that a renewal and a checkpoint
//! do not fail each other's precondition. When another instance has written in between, the lease is read again: a
//! request for the lease leaves it owned, a rewind moves the read position, a new owner means that it is lost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use driver::Clock;
use driver::{Error, ErrorKind};
use tokio::sync::watch;

use super::lease::{
    Lease, LeaseChange, LeasePosition, LeaseReport, ProcessorRecord, RangePosition, compare_leases,
};
use super::store::{LeaseStore, Versioned, WriteOutcome};
use crate::Result;

/// How a write to an owned lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseWriteOutcome {
    /// The lease was written.
    Written,
    /// Nothing was written: a rewind has moved the position. The lease is still owned.
    Rewound,
    /// Nothing was written: another instance owns the lease, or it was deleted.
    Lost,
}

/// A lease that this instance owns.
#[derive(Debug)]
pub(super) struct OwnedLease {
    store: LeaseStore,
    clock: Clock,
    expiry: Duration,
    /// The version that was written or read last. Locked during a write, so that there is one write at a time.
    stored: tokio::sync::Mutex<Versioned<Lease>>,
    cached: Mutex<CachedLease>,
    /// Wakes the worker when something about the lease has changed.
    changed: watch::Sender<u64>,
}

/// A copy of the lease that can be read while a write is in progress.
#[derive(Clone, Debug)]
struct CachedLease {
    lease: Lease,
    /// When the last write that succeeded began. The lease is owned at least for the lease expiry after that.
    renewed_at: Instant,
    is_lost: bool,
    /// The report that the next write contains.
    report: LeaseReport,
    /// Up to where changes were handled, if that was not written yet.
    unwritten_position: Option<LeasePosition>,
}

impl OwnedLease {
    /// A lease that was acquired with a write that began at `renewed_at`.
    pub(super) fn new(
        store: LeaseStore,
        clock: Clock,
        expiry: Duration,
        stored: Versioned<Lease>,
        renewed_at: Instant,
    ) -> OwnedLease {
        let cached = CachedLease {
            lease: stored.value.clone(),
            renewed_at,
            is_lost: false,
            report: stored.value.report.clone(),
            unwritten_position: None,
        };
        let changed = watch::Sender::new(0);
        OwnedLease {
            store,
            clock,
            expiry,
            stored: tokio::sync::Mutex::new(stored),
            cached: Mutex::new(cached),
            changed,
        }
    }

    /// The lease as it was last written or read.
    pub(super) fn lease(&self) -> Lease {
        self.with_cached(|cached| cached.lease.clone())
    }

    pub(super) fn generation(&self) -> u64 {
        self.with_cached(|cached| cached.lease.generation)
    }

    pub(super) fn is_requested(&self) -> bool {
        self.with_cached(|cached| cached.lease.requested_by.is_some())
    }

    pub(super) fn is_lost(&self) -> bool {
        self.with_cached(|cached| cached.is_lost)
    }

    /// Whether all other instances must still treat this instance as the owner.
    pub(super) fn is_unexpired(&self) -> bool {
        let now = self.clock.now();
        self.with_cached(|cached| {
            !cached.is_lost && now.saturating_duration_since(cached.renewed_at) < self.expiry
        })
    }

    /// When the last write that succeeded began.
    pub(super) fn renewed_at(&self) -> Instant {
        self.with_cached(|cached| cached.renewed_at)
    }

    /// A receiver that is notified of every change to the lease.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// The report as the next write will contain it.
    pub(super) fn report(&self) -> LeaseReport {
        self.with_cached(|cached| cached.report.clone())
    }

    /// Changes the report, which is stored with the next write.
    pub(super) fn update_report(&self, change: impl FnOnce(&mut LeaseReport)) {
        self.with_cached(|cached| change(&mut cached.report));
    }

    /// Stores this position with the next write. For positions whose loss would only repeat an empty read.
    pub(super) fn defer_checkpoint(&self, generation: u64, position: LeasePosition) {
        self.with_cached(|cached| {
            if cached.lease.generation == generation {
                cached.unwritten_position = Some(position);
            }
        });
    }

    /// Stores that all changes up to `position`, read in this generation, have been handled.
    pub(super) async fn checkpoint(
        &self,
        generation: u64,
        position: LeasePosition,
    ) -> Result<LeaseWriteOutcome> {
        self.write(Some(generation), |lease| lease.position = position.clone()).await
    }

    /// Renews the lease, so that other instances see that the owner runs.
    pub(super) async fn renew(&self) -> Result<LeaseWriteOutcome> {
        match self.write(None, |_| ()).await? {
            // A rewind was found instead of the expected version, and nothing was written.
            LeaseWriteOutcome::Rewound => self.write(None, |_| ()).await,
            outcome @ (LeaseWriteOutcome::Written | LeaseWriteOutcome::Lost) => Ok(outcome),
        }
    }

    /// Moves the position to the start of the newest generation.
    pub(super) async fn rewind(&self, record: &ProcessorRecord) -> Result<LeaseWriteOutcome> {
        self.write(None, |lease| *lease = lease.rewound(record)).await
    }

    /// Stores that the lease is to be replaced by one lease for each of `parts`. The owner, or the next one after a
    /// crash, then carries out the split.
    pub(super) async fn split(&self, generation: u64, parts: &[RangePosition]) -> Result<LeaseWriteOutcome> {
        self.write(Some(generation), |lease| lease.parts = parts.to_vec()).await
    }

    /// Gives up the ownership, so that another instance can acquire the lease.
    pub(super) async fn release(&self) -> Result<LeaseWriteOutcome> {
        let outcome = self.write(None, |lease| lease.owner = None).await;
        self.mark_lost();
        outcome
    }

    /// Deletes the lease after the leases of its parts were created.
    pub(super) async fn delete(&self) -> Result<LeaseWriteOutcome> {
        let mut stored = self.stored.lock().await;
        for _ in 0..WRITES_MAX {
            match self.store.delete(&stored.value.id, &stored.etag).await? {
                WriteOutcome::Stored(_) | WriteOutcome::Missing => {
                    self.mark_lost();
                    return Ok(LeaseWriteOutcome::Written);
                }
                WriteOutcome::Conflict => match self.reload(&mut stored).await? {
                    LeaseChange::StillOwned | LeaseChange::Rewound => {}
                    LeaseChange::Taken => return Ok(LeaseWriteOutcome::Lost),
                },
            }
        }
        Err(contended(&stored.value))
    }

    /// Applies `change` to the lease and writes it, if it is still owned and, where a generation is given, still of
    /// that generation.
    async fn write(&self, generation: Option<u64>, change: impl Fn(&mut Lease)) -> Result<LeaseWriteOutcome> {
        let mut stored = self.stored.lock().await;
        for _ in 0..WRITES_MAX {
            if self.is_lost() {
                return Ok(LeaseWriteOutcome::Lost);
            }
            if generation.is_some_and(|generation| generation != stored.value.generation) {
                return Ok(LeaseWriteOutcome::Rewound);
            }
            let mut next = stored.value.clone();
            let (report, position) =
                self.with_cached(|cached| (cached.report.clone(), cached.unwritten_position.clone()));
            if let Some(position) = position {
                next.position = position;
            }
            next.report = report;
            change(&mut next);
            next.heartbeat += 1;
            let began = self.clock.now();
            match self.store.replace_lease(&next, &stored.etag).await? {
                WriteOutcome::Stored(etag) => {
                    *stored = Versioned { value: next, etag };
                    self.apply_stored(&stored, Some(began));
                    return Ok(LeaseWriteOutcome::Written);
                }
                WriteOutcome::Missing => {
                    self.mark_lost();
                    return Ok(LeaseWriteOutcome::Lost);
                }
                WriteOutcome::Conflict => match self.reload(&mut stored).await? {
                    LeaseChange::StillOwned => {}
                    LeaseChange::Rewound => return Ok(LeaseWriteOutcome::Rewound),
                    LeaseChange::Taken => return Ok(LeaseWriteOutcome::Lost),
                },
            }
        }
        Err(contended(&stored.value))
    }

    /// Reads the lease again after another instance has written it.
    async fn reload(&self, stored: &mut Versioned<Lease>) -> Result<LeaseChange> {
        let Some(found) = self.store.lease(&stored.value.id).await? else {
            self.mark_lost();
            return Ok(LeaseChange::Taken);
        };
        let change = compare_leases(&stored.value, &found.value);
        match change {
            LeaseChange::Taken => self.mark_lost(),
            LeaseChange::StillOwned | LeaseChange::Rewound => {
                *stored = found;
                self.apply_stored(stored, None);
            }
        }
        Ok(change)
    }

    fn apply_stored(&self, stored: &Versioned<Lease>, renewed_at: Option<Instant>) {
        self.with_cached(|cached| {
            // After a rewind the position belongs to an older generation; after a write it is stored.
            if stored.value.generation != cached.lease.generation || renewed_at.is_some() {
                cached.unwritten_position = None;
            }
            cached.lease = stored.value.clone();
            cached.renewed_at = renewed_at.unwrap_or(cached.renewed_at);
        });
        self.changed.send_modify(|count| *count += 1);
    }

    fn mark_lost(&self) {
        self.with_cached(|cached| cached.is_lost = true);
        self.changed.send_modify(|count| *count += 1);
    }

    fn with_cached<T>(&self, access: impl FnOnce(&mut CachedLease) -> T) -> T {
        access(&mut self.cached.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How often a write is tried when other instances write the same lease.
const WRITES_MAX: u32 = 5;

fn contended(lease: &Lease) -> Error {
    let message = format!("the lease {} is changed by others faster than it can be written", lease.id);
    Error::new(ErrorKind::Unavailable, message)
}

/// The leases that an instance owns, by id.
pub(super) type OwnedLeases = Arc<Mutex<std::collections::BTreeMap<String, Arc<OwnedLease>>>>;
