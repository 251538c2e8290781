//! The lock types of this crate, and the one function that takes their guards.
//!
//! They are std's and not parking_lot's, because shuttle's locks have std's interface: `tests/schedules` compiles
//! the pool against shuttle's and so chooses every thread schedule.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::sync::{LockResult, PoisonError};

/// Returns the guard of a lock, also after a thread panicked while it held the lock.
///
/// Every critical section here leaves its data valid at each point where it can panic, so a poisoned lock
/// protects nothing that is broken.
pub(crate) fn ignore_poison<G>(guard: LockResult<G>) -> G {
    guard.unwrap_or_else(PoisonError::into_inner)
}
