//! A lease in the hands of this instance.
//!
//! Everything this instance writes to a lease goes through here, one write at a time, so that a renewal and a
//! checkpoint never take each other for strangers. A write that finds another version looks at what it is:
//! somebody who asks for the lease changes nothing, a rewind sends the reader elsewhere, other hands end it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use driver::Clock;
use driver::{Error, ErrorKind};
use tokio::sync::watch;

use super::lease::{Lease, Plan, Position, Report, Standing, Stretch, standing};
use super::store::{LeaseStore, Stored, Written};
use crate::Result;

/// What came of a write to a lease that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is written.
    Written,
    /// It is not: the lease is to be read from another place now, and still held.
    Rewound,
    /// It is not: the lease is in other hands.
    Lost,
}

/// A lease in the hands of this instance.
#[derive(Debug)]
pub(super) struct HeldLease {
    store: LeaseStore,
    clock: Clock,
    expiry: Duration,
    /// The version that was written or read last. Held over a write.
    stored: tokio::sync::Mutex<Stored<Lease>>,
    view: Mutex<View>,
    /// Wakes the worker when something about the lease has changed.
    changed: watch::Sender<u64>,
}

/// What can be seen without waiting for a write.
#[derive(Clone, Debug)]
struct View {
    lease: Lease,
    /// Before which write it was last certain to be held.
    certain_at: Instant,
    is_lost: bool,
    /// What the next write says besides.
    report: Report,
    /// Up to where it has been handled, if that was not written yet.
    ahead: Option<Position>,
}

impl HeldLease {
    /// A lease that was taken by a write that began at `certain_at`.
    pub(super) fn new(
        store: LeaseStore,
        clock: Clock,
        expiry: Duration,
        stored: Stored<Lease>,
        certain_at: Instant,
    ) -> HeldLease {
        let view = View {
            lease: stored.value.clone(),
            certain_at,
            is_lost: false,
            report: stored.value.report.clone(),
            ahead: None,
        };
        let changed = watch::Sender::new(0);
        HeldLease {
            store,
            clock,
            expiry,
            stored: tokio::sync::Mutex::new(stored),
            view: Mutex::new(view),
            changed,
        }
    }

    /// The lease as it is known to be.
    pub(super) fn lease(&self) -> Lease {
        self.view(|view| view.lease.clone())
    }

    pub(super) fn generation(&self) -> u64 {
        self.view(|view| view.lease.generation)
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.view(|view| view.lease.wanted.is_some())
    }

    pub(super) fn is_lost(&self) -> bool {
        self.view(|view| view.is_lost)
    }

    /// Whether others still have to take it for held.
    pub(super) fn is_certain(&self) -> bool {
        let now = self.clock.now();
        self.view(|view| !view.is_lost && now.saturating_duration_since(view.certain_at) < self.expiry)
    }

    /// When it was last certain to be held.
    pub(super) fn certain_at(&self) -> Instant {
        self.view(|view| view.certain_at)
    }

    /// Tells of changes to the lease.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// What was said about it last.
    pub(super) fn report(&self) -> Report {
        self.view(|view| view.report.clone())
    }

    /// Says something about it, with the next write.
    pub(super) fn tell(&self, change: impl FnOnce(&mut Report)) {
        self.view(|view| change(&mut view.report));
    }

    /// Nothing new up to this position: goes with the next write, which is soon enough.
    pub(super) fn note_position(&self, generation: u64, position: Position) {
        self.view(|view| {
            if view.lease.generation == generation {
                view.ahead = Some(position);
            }
        });
    }

    /// Everything up to `position`, read in this generation, has been handled.
    pub(super) async fn checkpoint(&self, generation: u64, position: Position) -> Result<Kept> {
        self.write(Some(generation), |lease| lease.position = position.clone()).await
    }

    /// Shows that this instance lives.
    pub(super) async fn renew(&self) -> Result<Kept> {
        match self.write(None, |_| ()).await? {
            // Nothing was written yet.
            Kept::Rewound => self.write(None, |_| ()).await,
            kept @ (Kept::Written | Kept::Lost) => Ok(kept),
        }
    }

    /// Sends the reader to where the newest generation begins.
    pub(super) async fn rewind(&self, plan: &Plan) -> Result<Kept> {
        self.write(None, |lease| *lease = lease.rewound(plan)).await
    }

    /// Puts `parts` in its place, as a promise that whoever holds it next keeps.
    pub(super) async fn divide(&self, generation: u64, parts: &[Stretch]) -> Result<Kept> {
        self.write(Some(generation), |lease| lease.parts = parts.to_vec()).await
    }

    /// Lets go of it.
    pub(super) async fn release(&self) -> Result<Kept> {
        let kept = self.write(None, |lease| lease.owner = None).await;
        self.lose();
        kept
    }

    /// Removes it, because its parts are there.
    pub(super) async fn remove(&self) -> Result<Kept> {
        let mut stored = self.stored.lock().await;
        for _ in 0..WRITES_MAX {
            match self.store.delete(&stored.value.id, &stored.etag).await? {
                Written::Done(_) | Written::Missing => {
                    self.lose();
                    return Ok(Kept::Written);
                }
                Written::Changed => match self.look_again(&mut stored).await? {
                    Standing::Held | Standing::Rewound => {}
                    Standing::Taken => return Ok(Kept::Lost),
                },
            }
        }
        Err(contended(&stored.value))
    }

    /// Writes the lease with `change` made to it, if it is still held and, where one is given, still of this
    /// generation.
    async fn write(&self, generation: Option<u64>, change: impl Fn(&mut Lease)) -> Result<Kept> {
        let mut stored = self.stored.lock().await;
        for _ in 0..WRITES_MAX {
            if self.is_lost() {
                return Ok(Kept::Lost);
            }
            if generation.is_some_and(|generation| generation != stored.value.generation) {
                return Ok(Kept::Rewound);
            }
            let mut next = stored.value.clone();
            let (report, ahead) = self.view(|view| (view.report.clone(), view.ahead.clone()));
            if let Some(ahead) = ahead {
                next.position = ahead;
            }
            next.report = report;
            change(&mut next);
            next.beat += 1;
            let began = self.clock.now();
            match self.store.replace_lease(&next, &stored.etag).await? {
                Written::Done(etag) => {
                    *stored = Stored { value: next, etag };
                    self.adopt(&stored, Some(began));
                    return Ok(Kept::Written);
                }
                Written::Missing => {
                    self.lose();
                    return Ok(Kept::Lost);
                }
                Written::Changed => match self.look_again(&mut stored).await? {
                    Standing::Held => {}
                    Standing::Rewound => return Ok(Kept::Rewound),
                    Standing::Taken => return Ok(Kept::Lost),
                },
            }
        }
        Err(contended(&stored.value))
    }

    /// Reads what somebody else wrote.
    async fn look_again(&self, stored: &mut Stored<Lease>) -> Result<Standing> {
        let Some(found) = self.store.lease(&stored.value.id).await? else {
            self.lose();
            return Ok(Standing::Taken);
        };
        let standing = standing(&stored.value, &found.value);
        match standing {
            Standing::Taken => self.lose(),
            Standing::Held | Standing::Rewound => {
                *stored = found;
                self.adopt(stored, None);
            }
        }
        Ok(standing)
    }

    fn adopt(&self, stored: &Stored<Lease>, certain_at: Option<Instant>) {
        self.view(|view| {
            // A position of before a rewind is none of this generation.
            if stored.value.generation != view.lease.generation || certain_at.is_some() {
                view.ahead = None;
            }
            view.lease = stored.value.clone();
            view.certain_at = certain_at.unwrap_or(view.certain_at);
        });
        self.changed.send_modify(|count| *count += 1);
    }

    fn lose(&self) {
        self.view(|view| view.is_lost = true);
        self.changed.send_modify(|count| *count += 1);
    }

    fn view<T>(&self, look: impl FnOnce(&mut View) -> T) -> T {
        look(&mut self.view.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How often a write is tried against others.
const WRITES_MAX: u32 = 5;

fn contended(lease: &Lease) -> Error {
    let message = format!("the lease {} changes faster than it can be written", lease.id);
    Error::new(ErrorKind::Unavailable, message)
}

/// Leases in the hands of this instance, by id.
pub(super) type HeldLeases = Arc<Mutex<std::collections::BTreeMap<String, Arc<HeldLease>>>>;
