//! How many races may be open at once: hedging helps the few that are slow, and must not double the load of
//! a region that is slow for all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Counts open races. Cheap to clone; clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Arc<AtomicU32>);

/// An open race; dropping it, for whatever reason, closes it.
#[derive(Debug)]
pub(crate) struct Permit(Arc<AtomicU32>);

impl Budget {
    /// Opens a race, unless `most` are open.
    pub(crate) fn take(&self, most: u32) -> Option<Permit> {
        let below = |open: u32| (open < most).then_some(open + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, below).ok()?;
        Some(Permit(Arc::clone(&self.0)))
    }

    /// How many races are open.
    pub(crate) fn open(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permit_given_back_can_be_taken_again() {
        let budget = Budget::default();
        let (first, second) = (budget.take(2), budget.take(2));
        assert!(first.is_some() && second.is_some() && budget.take(2).is_none());
        drop(first);
        assert_eq!(budget.open(), 1);
        assert!(budget.clone().take(2).is_some());
    }
}
