//! The circuit breakers of partitions: one for each partition, region and kind of access.
//!
//! A partition that keeps failing in one region is served by others (*open*), is probed there after a
//! while, and when that goes well gets its traffic back on trial (*half open*): the first success closes the
//! breaker, the first failure opens it again. What a failure does to a breaker is `breaker`. Pure: snapshots and
//! `now` in, the next snapshot out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use imbl::HashMap;
use protocol::partition_range::RangeId;

use super::breaker::{Breaker, BreakerState, PartitionFailure};
use crate::operation::{Access, ContainerName};
use crate::options::CircuitBreakerConfig;
use crate::region::Region;

/// A container by its name and by what tells it from another one of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ContainerIdentity {
    /// The name of the container.
    pub name: ContainerName,
    /// The `_rid` of the container.
    pub rid: String,
}

/// A physical partition of a container.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionId {
    /// The container of the partition.
    pub container: Arc<ContainerIdentity>,
    /// Which of its partitions.
    pub range: RangeId,
}

/// The reads or the writes of a partition in one region: what a breaker watches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionRegion {
    /// The physical partition that is watched.
    pub partition: PartitionId,
    /// The region where it is watched.
    pub region: Region,
    /// Whether its reads or its writes are watched.
    pub access: Access,
}

/// At most this many breakers are kept; more failures than that are a region's, not a partition's.
const BREAKERS_MAX: usize = 16_384;

/// A snapshot of all breakers. Cloning is cheap; a change costs the logarithm of their number.
#[derive(Clone, Debug)]
pub struct PartitionState {
    breakers: HashMap<PartitionRegion, Breaker>,
    config: CircuitBreakerConfig,
}

impl PartitionState {
    /// A state in which no partition has failed.
    pub fn new(config: CircuitBreakerConfig) -> PartitionState {
        PartitionState { breakers: HashMap::new(), config }
    }

    /// Whether no partition has failed anywhere, which is nearly always so and needs no further look-up.
    pub fn is_empty(&self) -> bool {
        self.breakers.is_empty()
    }

    /// Whether requests of this kind for the partition avoid the region.
    pub fn is_open(&self, partition: &PartitionId, region: &Region, access: Access) -> bool {
        self.open_breaker(partition, region, access).is_some()
    }

    /// The breaker of the partition in the region, if it is open.
    pub(crate) fn open_breaker(
        &self,
        partition: &PartitionId,
        region: &Region,
        access: Access,
    ) -> Option<&Breaker> {
        if self.breakers.is_empty() {
            return None;
        }
        let key = PartitionRegion { partition: partition.clone(), region: region.clone(), access };
        self.breakers.get(&key).filter(|breaker| breaker.is_open())
    }

    /// The state of the breaker of a partition in a region.
    pub fn state_of(&self, key: &PartitionRegion) -> BreakerState {
        self.breakers.get(key).map_or(BreakerState::Closed, |breaker| breaker.state)
    }

    /// Every breaker that remembers something.
    pub fn breakers(&self) -> impl Iterator<Item = (&PartitionRegion, &Breaker)> {
        self.breakers.iter()
    }

    /// The state after a request failed in a way that speaks against the partition in the region.
    #[must_use]
    pub fn record_failure(
        &self,
        key: &PartitionRegion,
        failure: PartitionFailure,
        now: Instant,
    ) -> PartitionState {
        if !self.config.enabled {
            return self.clone();
        }
        let threshold = match key.access {
            Access::Read => self.config.read_failure_threshold,
            Access::Write => self.config.write_failure_threshold,
        };
        self.with(key, self.breaker(key, now).after_failure(failure, threshold.get(), now))
    }

    /// The state after a region said that the partition is not there for writes: opened without counting.
    #[must_use]
    pub fn trip(&self, key: &PartitionRegion, now: Instant) -> PartitionState {
        self.with(key, self.breaker(key, now).tripped(now))
    }

    /// The state after a request succeeded: requests of this kind are served in that region, whatever was before.
    #[must_use]
    pub fn record_success(&self, key: &PartitionRegion) -> PartitionState {
        PartitionState { breakers: self.breakers.without(key), config: self.config }
    }

    /// Whether a success of the partition in the region would change anything.
    pub fn remembers(&self, key: &PartitionRegion) -> bool {
        !self.breakers.is_empty() && self.breakers.contains_key(key)
    }

    /// Open breakers whose probe is due, and the state in which they were just probed.
    pub fn take_probes(&self, now: Instant) -> (PartitionState, Vec<PartitionRegion>) {
        let mut next = self.clone();
        let mut due = Vec::new();
        for (key, breaker) in &self.breakers {
            if let BreakerState::Open { since, .. } = breaker.state
                && breaker.probe_due(key.access, &self.config).is_some_and(|at| at <= now)
            {
                due.push(key.clone());
                let state = BreakerState::Open { since, probed_at: now };
                next.breakers.insert(key.clone(), Breaker { state, ..*breaker });
            }
        }
        (next, due)
    }

    /// The state after a probe went well: traffic comes back on trial.
    #[must_use]
    pub fn probe_succeeded(&self, key: &PartitionRegion) -> PartitionState {
        match self.breakers.get(key) {
            Some(breaker) if breaker.is_open() => {
                self.with(key, Breaker { state: BreakerState::HalfOpen, ..*breaker })
            }
            _ => self.clone(),
        }
    }

    /// The state after a while: failures older than the window are forgotten, and what has been open for the
    /// failback interval gets its traffic back on trial, probed or not.
    #[must_use]
    pub fn sweep(&self, now: Instant) -> PartitionState {
        let mut next = self.clone();
        for (key, breaker) in &self.breakers {
            if breaker.change_due(&self.config) > now {
                continue;
            }
            if breaker.is_open() {
                next.breakers.insert(key.clone(), Breaker { state: BreakerState::HalfOpen, ..*breaker });
            } else {
                next.breakers.remove(key);
            }
        }
        next
    }

    /// When something will be due for [`PartitionState::take_probes`] or [`PartitionState::sweep`].
    pub fn next_probe(&self) -> Option<Instant> {
        let due = |(key, breaker): (&PartitionRegion, &Breaker)| {
            let change = breaker.change_due(&self.config);
            breaker.probe_due(key.access, &self.config).map_or(change, |probe| probe.min(change))
        };
        self.breakers.iter().map(due).min()
    }

    /// The breaker as it counts now: with the counts of the window only.
    fn breaker(&self, key: &PartitionRegion, now: Instant) -> Breaker {
        let fresh = Breaker::closed(now);
        match self.breakers.get(key) {
            None => fresh,
            Some(old)
                if now.saturating_duration_since(old.last_failure) >= self.config.counter_reset_window =>
            {
                Breaker { state: old.state, ..fresh }
            }
            Some(old) => *old,
        }
    }

    fn with(&self, key: &PartitionRegion, breaker: Breaker) -> PartitionState {
        if self.breakers.len() >= BREAKERS_MAX && !self.breakers.contains_key(key) {
            return self.clone();
        }
        PartitionState { breakers: self.breakers.update(key.clone(), breaker), config: self.config }
    }
}

/// The pause between two looks at the breakers: as often as a probe may be due, and not busily.
pub(crate) fn failback_interval(config: &CircuitBreakerConfig) -> Duration {
    config.unavailability_probe_delay.min(config.failback_interval).max(Duration::from_millis(100))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock::Clock;

    const SECOND: Duration = Duration::from_secs(1);

    fn key(range: u32, region: &str, access: Access) -> PartitionRegion {
        PartitionRegion { partition: partition(range), region: Region::new(region), access }
    }

    fn reads(range: u32, region: &str) -> PartitionRegion {
        key(range, region, Access::Read)
    }

    fn writes(range: u32, region: &str) -> PartitionRegion {
        key(range, region, Access::Write)
    }

    /// The state after one definite failure.
    fn failed(state: &PartitionState, key: &PartitionRegion, now: Instant) -> PartitionState {
        state.record_failure(key, PartitionFailure::Definite, now)
    }

    /// A partition of some container.
    pub(crate) fn partition(range: u32) -> PartitionId {
        let container = ContainerIdentity { name: ContainerName::new("d", "c"), rid: "rid".into() };
        PartitionId { container: Arc::new(container), range: RangeId(range) }
    }

    fn empty() -> PartitionState {
        PartitionState::new(CircuitBreakerConfig::default())
    }

    fn is_open(state: &PartitionState, key: &PartitionRegion) -> bool {
        state.is_open(&key.partition, &key.region, key.access)
    }

    #[test]
    fn two_reads_or_five_writes_in_a_row_open_a_breaker() {
        let now = Clock::machine().now();
        for (access, threshold) in [(Access::Read, 2), (Access::Write, 5)] {
            let mut state = empty();
            for failure in 1..=threshold {
                assert!(!is_open(&state, &key(0, "A", access)), "before failure {failure}");
                state = failed(&state, &key(0, "A", access), now);
            }
            assert!(is_open(&state, &key(0, "A", access)));
            assert!(
                !is_open(&state, &key(0, "B", access)) && !is_open(&state, &key(1, "A", access)),
                "others are not concerned"
            );
        }
    }

    #[test]
    fn reads_and_writes_have_breakers_of_their_own() {
        let now = Clock::machine().now();
        let mut state = failed(&empty(), &reads(0, "A"), now);
        for _ in 0..4 {
            state = failed(&state, &writes(0, "A"), now);
        }
        // A read that succeeds says nothing about writes.
        state = failed(&state.record_success(&reads(0, "A")), &writes(0, "A"), now);
        assert!(is_open(&state, &writes(0, "A")));
        assert!(!is_open(&state, &reads(0, "A")), "a partition that takes no writes may be read");
    }

    #[test]
    fn a_success_or_five_minutes_begin_the_count_anew() {
        let now = Clock::machine().now();
        let once = failed(&empty(), &reads(0, "A"), now);
        let state = once.record_success(&reads(0, "A"));
        assert!(state.is_empty());
        assert!(!is_open(&failed(&state, &reads(0, "A"), now), &reads(0, "A")));
        let window = Duration::from_secs(300);
        let just_before = failed(&once, &reads(0, "A"), now + window - SECOND);
        assert!(is_open(&just_before, &reads(0, "A")));
        let after = failed(&once, &reads(0, "A"), now + window);
        assert!(!is_open(&after, &reads(0, "A")));
        assert!(once.sweep(now + window).is_empty());
        assert!(!once.sweep(now + window - SECOND).is_empty());
    }

    #[test]
    fn an_open_breaker_is_probed_after_five_seconds_and_not_twice_at_once() {
        let now = Clock::machine().now();
        let open = failed(&failed(&empty(), &reads(0, "A"), now), &reads(0, "A"), now);
        assert!(open.take_probes(now + 4 * SECOND).1.is_empty());
        let (state, due) = open.take_probes(now + 5 * SECOND);
        assert_eq!(due, [reads(0, "A")]);
        assert!(is_open(&state, &reads(0, "A")), "a probe alone changes nothing");
        assert!(state.take_probes(now + 9 * SECOND).1.is_empty());
        assert_eq!(state.take_probes(now + 10 * SECOND).1.len(), 1);
        assert_eq!(open.next_probe(), Some(now + 5 * SECOND));
        let for_writes = empty().trip(&writes(0, "A"), now);
        assert!(for_writes.take_probes(now + 60 * SECOND).1.is_empty(), "a read says nothing about writes");
        assert_eq!(for_writes.next_probe(), Some(now + 300 * SECOND));
    }

    #[test]
    fn on_trial_the_first_success_closes_and_the_first_failure_opens() {
        let now = Clock::machine().now();
        let trial = empty().trip(&reads(0, "A"), now).probe_succeeded(&reads(0, "A"));
        assert!(!is_open(&trial, &reads(0, "A")));
        assert!(trial.record_success(&reads(0, "A")).is_empty());
        assert!(is_open(&failed(&trial, &reads(0, "A"), now), &reads(0, "A")));
        assert!(empty().probe_succeeded(&reads(0, "A")).is_empty(), "what is not open needs no trial");
    }

    #[test]
    fn five_minutes_of_being_open_end_in_a_trial_without_a_probe() {
        let now = Clock::machine().now();
        let open = empty().trip(&writes(0, "A"), now);
        assert!(is_open(&open.sweep(now + Duration::from_secs(299)), &writes(0, "A")));
        let trial = open.sweep(now + Duration::from_secs(300));
        assert!(!is_open(&trial, &writes(0, "A")) && trial.remembers(&writes(0, "A")));
    }

    #[test]
    fn a_breaker_that_is_switched_off_counts_nothing() {
        let config = CircuitBreakerConfig { enabled: false, ..CircuitBreakerConfig::default() };
        let state = failed(&PartitionState::new(config), &reads(0, "A"), Clock::machine().now());
        assert!(state.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let now = Clock::machine().now();
        let mut state = empty();
        for range in 0..u32::try_from(BREAKERS_MAX).expect("small") + 10 {
            state = failed(&state, &reads(range, "A"), now);
        }
        assert_eq!(state.breakers().count(), BREAKERS_MAX);
        assert!(is_open(&failed(&state, &reads(0, "A"), now), &reads(0, "A")), "the watched stay watched");
    }
}
