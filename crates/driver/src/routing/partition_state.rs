//! A circuit breaker per partition and region.
//!
//! A partition that keeps failing in one region is served by others (*open*), is probed there after a
//! while (a *probe*), and when that goes well gets its traffic back on trial (*half open*): the first success
//! closes the breaker, the first failure opens it again. Pure: snapshots and `now` in, the next snapshot out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use imbl::HashMap;
use protocol::partition_range::RangeId;

use crate::operation::ContainerName;
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

/// A partition in one region: what a breaker watches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartitionRegion {
    /// The physical partition that is watched.
    pub partition: PartitionId,
    /// The region where it is watched.
    pub region: Region,
}

/// How a partition stands in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// Traffic flows; failures are counted.
    Closed,
    /// Requests for the partition go to other regions.
    Open {
        /// When the breaker opened.
        since: Instant,
        /// When it was last looked at, or opened.
        probed_at: Instant,
    },
    /// Traffic flows on trial.
    HalfOpen,
}

/// What is known of one partition in one region. Breakers without anything to remember are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Reads that failed, one after the other.
    pub failed_reads: u32,
    /// Writes that failed, one after the other.
    pub failed_writes: u32,
    /// When the last of them did.
    pub last_failure: Instant,
    /// The state of the breaker.
    pub state: BreakerState,
}

/// At most this many partitions are watched; more failures than that are a region's, not a partition's.
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

    /// Whether the breaker of the partition in the region is open.
    pub fn is_open(&self, partition: &PartitionId, region: &Region) -> bool {
        if self.breakers.is_empty() {
            return false;
        }
        let key = PartitionRegion { partition: partition.clone(), region: region.clone() };
        self.breakers.get(&key).is_some_and(|breaker| matches!(breaker.state, BreakerState::Open { .. }))
    }

    /// The state of the breaker of a partition in a region.
    pub fn state_of(&self, key: &PartitionRegion) -> BreakerState {
        self.breakers.get(key).map_or(BreakerState::Closed, |breaker| breaker.state)
    }

    /// Every breaker that remembers something.
    pub fn breakers(&self) -> impl Iterator<Item = (&PartitionRegion, &Breaker)> {
        self.breakers.iter()
    }

    /// The state after a request failed in a way that speaks against the partition in the region. Opens the
    /// breaker once enough of a kind failed in a row, and at once while it was on trial.
    #[must_use]
    pub fn record_failure(&self, key: &PartitionRegion, is_read: bool, now: Instant) -> PartitionState {
        if !self.config.enabled {
            return self.clone();
        }
        let mut breaker = self.breaker(key, now);
        let failures = if is_read { &mut breaker.failed_reads } else { &mut breaker.failed_writes };
        *failures = failures.saturating_add(1);
        breaker.last_failure = now;
        let enough = breaker.failed_reads >= self.config.read_failure_threshold.get()
            || breaker.failed_writes >= self.config.write_failure_threshold.get();
        breaker.state = match breaker.state {
            BreakerState::Closed if !enough => BreakerState::Closed,
            BreakerState::Closed | BreakerState::HalfOpen => {
                BreakerState::Open { since: now, probed_at: now }
            }
            open @ BreakerState::Open { .. } => open,
        };
        self.with(key, breaker)
    }

    /// The state after a region said that the partition is not there for writes: opened without counting.
    #[must_use]
    pub fn trip(&self, key: &PartitionRegion, now: Instant) -> PartitionState {
        let mut breaker = self.breaker(key, now);
        breaker.last_failure = now;
        if !matches!(breaker.state, BreakerState::Open { .. }) {
            breaker.state = BreakerState::Open { since: now, probed_at: now };
        }
        self.with(key, breaker)
    }

    /// The state after a request succeeded: the partition is well in that region, whatever was before.
    #[must_use]
    pub fn record_success(&self, key: &PartitionRegion) -> PartitionState {
        PartitionState { breakers: self.breakers.without(key), config: self.config }
    }

    /// Whether a success of the partition in the region would change anything.
    pub fn remembers(&self, key: &PartitionRegion) -> bool {
        !self.breakers.is_empty() && self.breakers.contains_key(key)
    }

    /// Open breakers that were not looked at for the probe delay, and the state in which they just were. A
    /// probe reads, so it is no help where only writes failed: those wait for [`PartitionState::sweep`].
    pub fn take_probes(&self, now: Instant) -> (PartitionState, Vec<PartitionRegion>) {
        let delay = self.config.unavailability_probe_delay;
        let mut next = self.clone();
        let mut due = Vec::new();
        for (key, breaker) in &self.breakers {
            if let BreakerState::Open { since, probed_at: looked } = breaker.state
                && breaker.failed_reads > 0
                && now.saturating_duration_since(looked) >= delay
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
            Some(breaker @ Breaker { state: BreakerState::Open { .. }, .. }) => {
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
            match breaker.state {
                BreakerState::Closed | BreakerState::HalfOpen if self.is_forgotten(breaker, now) => {
                    next.breakers.remove(key);
                }
                BreakerState::Open { since, .. }
                    if now.saturating_duration_since(since) >= self.config.failback_interval =>
                {
                    next.breakers.insert(key.clone(), Breaker { state: BreakerState::HalfOpen, ..*breaker });
                }
                BreakerState::Closed | BreakerState::HalfOpen | BreakerState::Open { .. } => {}
            }
        }
        next
    }

    /// When something will be due for [`PartitionState::take_probes`] or [`PartitionState::sweep`].
    pub fn next_probe(&self) -> Option<Instant> {
        let config = &self.config;
        let due = |breaker: &Breaker| match breaker.state {
            BreakerState::Closed | BreakerState::HalfOpen => {
                breaker.last_failure + config.counter_reset_window
            }
            BreakerState::Open { since, probed_at: looked } if breaker.failed_reads > 0 => {
                (since + config.failback_interval).min(looked + config.unavailability_probe_delay)
            }
            BreakerState::Open { since, .. } => since + config.failback_interval,
        };
        self.breakers.values().map(due).min()
    }

    fn is_forgotten(&self, breaker: &Breaker, now: Instant) -> bool {
        now.saturating_duration_since(breaker.last_failure) >= self.config.counter_reset_window
    }

    /// The breaker as it counts now: with the counts of the window only.
    fn breaker(&self, key: &PartitionRegion, now: Instant) -> Breaker {
        let fresh =
            Breaker { failed_reads: 0, failed_writes: 0, last_failure: now, state: BreakerState::Closed };
        match self.breakers.get(key) {
            None => fresh,
            Some(old) if self.is_forgotten(old, now) => Breaker { state: old.state, ..fresh },
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

    fn key(range: u32, region: &str) -> PartitionRegion {
        PartitionRegion { partition: partition(range), region: Region::new(region) }
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
        state.is_open(&key.partition, &key.region)
    }

    #[test]
    fn two_reads_or_five_writes_in_a_row_open_a_breaker() {
        let now = Clock::machine().now();
        for (is_read, threshold) in [(true, 2), (false, 5)] {
            let mut state = empty();
            for failure in 1..=threshold {
                assert!(!is_open(&state, &key(0, "A")), "before failure {failure}");
                state = state.record_failure(&key(0, "A"), is_read, now);
            }
            assert!(is_open(&state, &key(0, "A")));
            assert!(
                !is_open(&state, &key(0, "B")) && !is_open(&state, &key(1, "A")),
                "others are not concerned"
            );
        }
    }

    #[test]
    fn reads_and_writes_are_counted_apart() {
        let now = Clock::machine().now();
        let mut state = empty().record_failure(&key(0, "A"), true, now);
        for _ in 0..4 {
            state = state.record_failure(&key(0, "A"), false, now);
        }
        assert!(!is_open(&state, &key(0, "A")));
    }

    #[test]
    fn a_success_or_five_minutes_begin_the_count_anew() {
        let now = Clock::machine().now();
        let once = empty().record_failure(&key(0, "A"), true, now);
        let state = once.record_success(&key(0, "A"));
        assert!(state.is_empty());
        assert!(!is_open(&state.record_failure(&key(0, "A"), true, now), &key(0, "A")));
        let window = Duration::from_secs(300);
        let just_before = once.record_failure(&key(0, "A"), true, now + window - SECOND);
        assert!(is_open(&just_before, &key(0, "A")));
        let after = once.record_failure(&key(0, "A"), true, now + window);
        assert!(!is_open(&after, &key(0, "A")));
        assert!(once.sweep(now + window).is_empty());
        assert!(!once.sweep(now + window - SECOND).is_empty());
    }

    #[test]
    fn an_open_breaker_is_probed_after_five_seconds_and_not_twice_at_once() {
        let now = Clock::machine().now();
        let open = empty().record_failure(&key(0, "A"), true, now).record_failure(&key(0, "A"), true, now);
        assert!(open.take_probes(now + 4 * SECOND).1.is_empty());
        let (state, due) = open.take_probes(now + 5 * SECOND);
        assert_eq!(due, [key(0, "A")]);
        assert!(is_open(&state, &key(0, "A")), "a probe alone changes nothing");
        assert!(state.take_probes(now + 9 * SECOND).1.is_empty());
        assert_eq!(state.take_probes(now + 10 * SECOND).1.len(), 1);
        assert_eq!(open.next_probe(), Some(now + 5 * SECOND));
        let for_writes = empty().trip(&key(0, "A"), now);
        assert!(for_writes.take_probes(now + 60 * SECOND).1.is_empty(), "a read says nothing about writes");
        assert_eq!(for_writes.next_probe(), Some(now + 300 * SECOND));
    }

    #[test]
    fn on_trial_the_first_success_closes_and_the_first_failure_opens() {
        let now = Clock::machine().now();
        let trial = empty().trip(&key(0, "A"), now).probe_succeeded(&key(0, "A"));
        assert!(!is_open(&trial, &key(0, "A")));
        assert!(trial.record_success(&key(0, "A")).is_empty());
        assert!(is_open(&trial.record_failure(&key(0, "A"), true, now), &key(0, "A")));
        assert!(empty().probe_succeeded(&key(0, "A")).is_empty(), "what is not open needs no trial");
    }

    #[test]
    fn five_minutes_of_being_open_end_in_a_trial_without_a_probe() {
        let now = Clock::machine().now();
        let open = empty().trip(&key(0, "A"), now);
        assert!(is_open(&open.sweep(now + Duration::from_secs(299)), &key(0, "A")));
        let trial = open.sweep(now + Duration::from_secs(300));
        assert!(!is_open(&trial, &key(0, "A")) && trial.remembers(&key(0, "A")));
    }

    #[test]
    fn a_breaker_that_is_switched_off_counts_nothing() {
        let config = CircuitBreakerConfig { enabled: false, ..CircuitBreakerConfig::default() };
        let now = Clock::machine().now();
        let state = PartitionState::new(config).record_failure(&key(0, "A"), true, now);
        assert!(state.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let now = Clock::machine().now();
        let mut state = empty();
        for range in 0..u32::try_from(BREAKERS_MAX).expect("small") + 10 {
            state = state.record_failure(&key(range, "A"), true, now);
        }
        assert_eq!(state.breakers().count(), BREAKERS_MAX);
        assert!(
            is_open(&state.record_failure(&key(0, "A"), true, now), &key(0, "A")),
            "the watched stay watched"
        );
    }
}
