//! Slot leases in memory, for dispatchers of one process.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use super::lease_provider::LeaseProvider;
use crate::clock::{self, Millis};

/// How long a caller that does not ask is still counted.
const ABSENCE_MAX: Duration = Duration::from_secs(30);

/// Shares slots out among the dispatchers of one process. Slots are rebalanced as callers come and go: each has its
/// share of the 256, and a caller that stops asking loses it after 30 seconds.
#[derive(Debug, Default)]
pub struct InMemoryLeaseProvider {
    /// When each caller asked last.
    callers: Mutex<BTreeMap<u64, Millis>>,
}

impl InMemoryLeaseProvider {
    /// Leases that no dispatcher has asked for yet.
    pub fn new() -> InMemoryLeaseProvider {
        InMemoryLeaseProvider::default()
    }

    fn acquire(&self, caller_id: u64, now: Millis) -> Vec<u8> {
        let mut callers = self.callers.lock();
        callers.insert(caller_id, now);
        callers.retain(|_, asked| now - *asked <= clock::millis(ABSENCE_MAX));
        share(callers.keys().copied().collect::<Vec<_>>().as_slice(), caller_id)
    }
}

/// The slots of one caller: every n-th, beginning with its position among the callers.
fn share(callers: &[u64], caller_id: u64) -> Vec<u8> {
    let Some(position) = callers.iter().position(|caller| *caller == caller_id) else { return Vec::new() };
    (0..=u8::MAX).filter(|slot| *slot as usize % callers.len() == position).collect()
}

#[async_trait]
impl LeaseProvider for InMemoryLeaseProvider {
    async fn acquire_slots(&self, caller_id: u64) -> Vec<u8> {
        self.acquire(caller_id, clock::now())
    }

    async fn release_slots(&self, caller_id: u64) {
        self.callers.lock().remove(&caller_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_callers_share_all_slots_evenly() {
        let leases = InMemoryLeaseProvider::new();
        for caller in [7, 8, 9] {
            leases.acquire(caller, 0.0);
        }
        let shares = [7, 8, 9].map(|caller| leases.acquire(caller, 1.0));
        assert_eq!(shares.each_ref().map(Vec::len), [86, 85, 85]);
        let mut all = shares.concat();
        all.sort_unstable();
        assert_eq!(all, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn slots_of_a_caller_that_leaves_or_stays_away_go_to_the_others() {
        let leases = InMemoryLeaseProvider::new();
        assert_eq!(leases.acquire(1, 0.0).len(), 256);
        assert_eq!(leases.acquire(2, 0.0).len(), 128);
        assert_eq!(leases.acquire(1, 20_000.0).len(), 128);
        assert_eq!(leases.acquire(1, 31_000.0).len(), 256);
        leases.acquire(3, 31_000.0);
        leases.callers.lock().remove(&3);
        assert_eq!(leases.acquire(1, 31_000.0).len(), 256);
    }
}
