//! A rule in force, with the counts of what it matched and hit.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clock::HumanDuration;
use fastrand::Rng;
use smol_str::SmolStr;

use super::report::{RuleReport, RuleState};
use crate::filter::RequestAttributes;
use crate::random::{rng_of_request, rule_seed};
use crate::rule::FaultRule;
use crate::schedule::SchedulePhase;

/// A rule in force.
#[derive(Debug)]
pub(super) struct ActiveRule {
    pub(super) id: SmolStr,
    pub(super) rule: FaultRule,
    /// The seed of this rule's random numbers.
    seed: u64,
    added_at: Duration,
    /// How many requests the rule matched while it was active.
    matched: AtomicU64,
    /// How many of those it applied to.
    hits: AtomicU64,
    /// The connections that it refused, reset or swallowed, by region.
    connections: Mutex<BTreeMap<String, u64>>,
}

impl ActiveRule {
    /// A rule that was added at this time to a set with this seed.
    pub(super) fn new(id: SmolStr, rule: FaultRule, seed: u64, added_at: Duration) -> ActiveRule {
        let seed = rule_seed(seed, &id);
        let (matched, hits) = (AtomicU64::new(0), AtomicU64::new(0));
        ActiveRule { id, rule, seed, added_at, matched, hits, connections: Mutex::default() }
    }

    /// A copy with counts of zero and another seed. Its schedule goes on.
    pub(super) fn restarted(&self, seed: u64) -> ActiveRule {
        ActiveRule::new(self.id.clone(), self.rule.clone(), seed, self.added_at)
    }

    /// Counts a request, and returns the random source for the effect if the rule applies to it.
    pub(super) fn apply(&self, request: &RequestAttributes<'_>, now: Duration) -> Option<Rng> {
        let is_matched = !self.rule.is_on_port()
            && matches!(self.phase(now), SchedulePhase::Active { .. })
            && self.rule.filter.matches(request);
        if !is_matched {
            return None;
        }
        // Relaxed, here and below: the counts order nothing else, and each update is atomic by itself.
        let number = self.matched.fetch_add(1, Ordering::Relaxed);
        let mut rng = rng_of_request(self.seed, number);
        let is_selected = self.rule.schedule.selects(number)
            && self.rule.probability.is_none_or(|probability| probability.decide(&mut rng));
        (is_selected && self.count_hit()).then_some(rng)
    }

    /// Counts connections of a region that the rule refused, reset or swallowed.
    pub(super) fn count_connections(&self, region: &str, count: u64) {
        self.matched.fetch_add(count, Ordering::Relaxed);
        self.hits.fetch_add(count, Ordering::Relaxed);
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        *connections.entry(region.to_owned()).or_default() += count;
    }

    /// Counts a hit, unless the rule has had all its hits.
    fn count_hit(&self) -> bool {
        let next = |hits: u64| self.rule.schedule.hits_max.is_none_or(|max| hits < max).then_some(hits + 1);
        self.hits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Where the rule stands in its schedule.
    pub(super) fn phase(&self, now: Duration) -> SchedulePhase {
        let age = now.saturating_sub(self.added_at);
        self.rule.schedule.phase(age, self.hits.load(Ordering::Relaxed))
    }

    /// Whether the rule is over: its time has passed, or it had all its hits.
    pub(super) fn has_ended(&self, now: Duration) -> bool {
        self.phase(now) == SchedulePhase::Ended
    }

    /// The rule, its state and its counts.
    pub(super) fn report(&self, now: Duration) -> RuleReport {
        let (state, starts_in, ends_in) = match self.phase(now) {
            SchedulePhase::Waiting { starts_in } => {
                (RuleState::Waiting, Some(HumanDuration::remaining(starts_in)), None)
            }
            SchedulePhase::Active { ends_in } => {
                (RuleState::Active, None, ends_in.map(HumanDuration::remaining))
            }
            SchedulePhase::Ended => (RuleState::Ended, None, None),
        };
        RuleReport {
            rule: self.rule.clone(),
            state,
            matched: self.matched.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
            connections: self.connections.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            starts_in,
            ends_in,
        }
    }
}
