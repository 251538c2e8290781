//! Decides which leases have expired, from how long each was observed without a change. Pure.
//!
//! Clocks of other machines are not compared. An owner renews its lease by writing to it; a lease that was observed
//! unchanged for the lease expiry has lost its owner. The owner counts from before its write and the observers from
//! when they first saw it, so the owner stops before anybody takes the lease.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::lease::Lease;

/// For each lease, since when it has been observed in its current state.
#[derive(Debug, Default)]
pub(super) struct LeaseObservations(HashMap<String, LeaseObservation>);

#[derive(Debug)]
struct LeaseObservation {
    owner: Option<String>,
    term: u64,
    heartbeat: u64,
    since: Instant,
}

impl LeaseObservations {
    /// Records the current state of all leases; leases that no longer exist are removed.
    pub(super) fn record<'a>(&mut self, leases: impl IntoIterator<Item = &'a Lease>, now: Instant) {
        let mut before = std::mem::take(&mut self.0);
        for lease in leases {
            let known = before.remove(&lease.id).filter(|known| {
                (&known.owner, known.term, known.heartbeat) == (&lease.owner, lease.term, lease.heartbeat)
            });
            let observation = known.unwrap_or_else(|| LeaseObservation {
                owner: lease.owner.clone(),
                term: lease.term,
                heartbeat: lease.heartbeat,
                since: now,
            });
            self.0.insert(lease.id.clone(), observation);
        }
    }

    /// Whether a lease was observed without a change for at least `duration`.
    pub(super) fn is_unchanged_for(&self, lease: &str, now: Instant, duration: Duration) -> bool {
        let observation = self.0.get(lease);
        observation.is_some_and(|observation| now.saturating_duration_since(observation.since) >= duration)
    }
}

#[cfg(test)]
mod tests {
    use driver::Clock;
    use protocol::partition::EpkRange;

    use super::super::lease::{LeasePosition, RangePosition};
    use super::*;

    #[test]
    fn a_lease_expires_once_it_was_observed_unchanged_for_the_lease_expiry() {
        let start = Clock::machine().now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let expiry = Duration::from_secs(10);
        let mut lease = Lease::new("p", &RangePosition::new(EpkRange::FULL, LeasePosition::Beginning), 1);
        lease.owner = Some("other".into());
        let mut observations = LeaseObservations::default();
        let mut is_expired = |lease: &Lease, now| {
            observations.record([lease], now);
            observations.is_unchanged_for(&lease.id, now, expiry)
        };
        assert!(!is_expired(&lease, at(100)), "observed for the first time, however old it is");
        assert!(!is_expired(&lease, at(109)));
        lease.heartbeat += 1;
        assert!(!is_expired(&lease, at(110)), "the owner renewed it");
        // A request for the lease comes from another instance, so it is no heartbeat of the owner.
        lease.requested_by = Some("me".into());
        assert!(!is_expired(&lease, at(119)));
        assert!(is_expired(&lease, at(120)));
        lease.owner = Some("third".into());
        assert!(!is_expired(&lease, at(121)), "it has a new owner");
        observations.record([], at(122));
        assert!(!observations.is_unchanged_for(&lease.id, at(200), expiry), "it was deleted");
    }
}
