//! Which leases nobody holds any more. Pure.
//!
//! Clocks of other machines are not asked. An owner shows that it lives by changing its lease; a lease that
//! was seen unchanged for longer than leases last has lost its owner. The owner counts from before it wrote,
//! everybody else from when they first saw what it wrote, so the owner gives up first.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::lease::Lease;

/// Since when each lease has looked the way it does.
#[derive(Debug, Default)]
pub(super) struct Sightings(HashMap<String, Sighting>);

#[derive(Debug)]
struct Sighting {
    owner: Option<String>,
    term: u64,
    beat: u64,
    since: Instant,
}

impl Sightings {
    /// Takes note of how the leases look now; those that are gone are forgotten.
    pub(super) fn note<'a>(&mut self, leases: impl IntoIterator<Item = &'a Lease>, now: Instant) {
        let mut before = std::mem::take(&mut self.0);
        for lease in leases {
            let known = before.remove(&lease.id).filter(|known| {
                (&known.owner, known.term, known.beat) == (&lease.owner, lease.term, lease.beat)
            });
            let sighting = known.unwrap_or_else(|| Sighting {
                owner: lease.owner.clone(),
                term: lease.term,
                beat: lease.beat,
                since: now,
            });
            self.0.insert(lease.id.clone(), sighting);
        }
    }

    /// Whether a lease has looked the same for `expiry`.
    pub(super) fn is_silent(&self, lease: &str, now: Instant, expiry: Duration) -> bool {
        self.0.get(lease).is_some_and(|sighting| now.saturating_duration_since(sighting.since) >= expiry)
    }
}

#[cfg(test)]
mod tests {
    use driver::Clock;
    use protocol::partition::EpkRange;

    use super::super::lease::{Position, Stretch};
    use super::*;

    #[test]
    fn a_lease_is_silent_once_it_was_seen_unchanged_for_as_long_as_leases_last() {
        let start = Clock::machine().now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let expiry = Duration::from_secs(10);
        let mut lease = Lease::new("p", &Stretch::new(EpkRange::FULL, Position::Beginning), 1);
        lease.owner = Some("other".into());
        let mut sightings = Sightings::default();
        let mut silent = |lease: &Lease, now| {
            sightings.note([lease], now);
            sightings.is_silent(&lease.id, now, expiry)
        };
        assert!(!silent(&lease, at(100)), "seen for the first time, however old it is");
        assert!(!silent(&lease, at(109)));
        lease.beat += 1;
        assert!(!silent(&lease, at(110)), "a sign of life");
        // Somebody who asks for it is no sign of life of its owner.
        lease.wanted = Some("me".into());
        assert!(!silent(&lease, at(119)));
        assert!(silent(&lease, at(120)));
        lease.owner = Some("third".into());
        assert!(!silent(&lease, at(121)), "in new hands");
        sightings.note([], at(122));
        assert!(!sightings.is_silent(&lease.id, at(200), expiry), "gone and forgotten");
    }
}
