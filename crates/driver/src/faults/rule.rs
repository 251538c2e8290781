//! A condition, a reaction, and for how long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::condition::{FaultCondition, Seen};
use super::reaction::Reaction;

/// Which requests fail how, how often and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    name: String,
    condition: FaultCondition,
    reaction: Reaction,
    probability: f64,
    begins_after: Duration,
    lasts: Option<Duration>,
    skips: u64,
    hits_max: Option<u64>,
}

impl FaultRule {
    /// Every request, always.
    pub fn new(name: impl Into<String>, reaction: Reaction) -> FaultRule {
        FaultRule {
            name: name.into(),
            condition: FaultCondition::any(),
            reaction,
            probability: 1.0,
            begins_after: Duration::ZERO,
            lasts: None,
            skips: 0,
            hits_max: None,
        }
    }

    /// Only requests that are meant.
    #[must_use]
    pub fn when(self, condition: FaultCondition) -> FaultRule {
        FaultRule { condition, ..self }
    }

    /// Only this share of them: 0 is none and 1 is all.
    #[must_use]
    pub fn probability(self, probability: f64) -> FaultRule {
        FaultRule { probability: probability.clamp(0.0, 1.0), ..self }
    }

    /// Only from this long after the rule was added.
    #[must_use]
    pub fn begins_after(self, delay: Duration) -> FaultRule {
        FaultRule { begins_after: delay, ..self }
    }

    /// Only for this long.
    #[must_use]
    pub fn lasts(self, duration: Duration) -> FaultRule {
        FaultRule { lasts: Some(duration), ..self }
    }

    /// Only after so many that would have been hit.
    #[must_use]
    pub fn skips(self, requests: u64) -> FaultRule {
        FaultRule { skips: requests, ..self }
    }

    /// Only so many.
    #[must_use]
    pub fn hits_max(self, hits: u64) -> FaultRule {
        FaultRule { hits_max: Some(hits), ..self }
    }
}

/// A rule in force.
#[derive(Debug)]
pub(super) struct ActiveRule {
    rule: FaultRule,
    since: Instant,
    /// Requests that matched, those skipped included.
    matched: AtomicU64,
}

impl ActiveRule {
    pub(super) fn new(rule: FaultRule, since: Instant) -> ActiveRule {
        ActiveRule { rule, since, matched: AtomicU64::new(0) }
    }

    pub(super) fn name(&self) -> &str {
        &self.rule.name
    }

    pub(super) fn reaction(&self) -> &Reaction {
        &self.rule.reaction
    }

    /// How many requests it has hit.
    pub(super) fn hits(&self) -> u64 {
        let beyond = self.matched.load(Ordering::Relaxed).saturating_sub(self.rule.skips);
        self.rule.hits_max.map_or(beyond, |most| beyond.min(most))
    }

    /// Whether the rule hits this request; if so it is counted. `draw` is asked only where chance decides.
    pub(super) fn takes(&self, seen: &Seen<'_>, now: Instant, draw: impl FnOnce() -> f64) -> bool {
        let rule = &self.rule;
        let age = now.saturating_duration_since(self.since);
        let in_time =
            age >= rule.begins_after && rule.lasts.is_none_or(|lasts| age - rule.begins_after < lasts);
        if !in_time || !rule.condition.holds(seen) || !(rule.probability >= 1.0 || draw() < rule.probability)
        {
            return false;
        }
        let number = self.matched.fetch_add(1, Ordering::Relaxed);
        number >= rule.skips && rule.hits_max.is_none_or(|most| number - rule.skips < most)
    }
}

#[cfg(test)]
mod tests {
    use protocol::resource_path::ResourceType;

    use super::*;
    use crate::clock::Clock;
    use crate::operation::OperationKind;

    fn seen() -> Seen<'static> {
        Seen {
            operation: OperationKind::Read,
            resource: ResourceType::Item,
            database: None,
            container: None,
            authority: "one.example:443",
            region: None,
            client: 0,
        }
    }

    fn rule() -> FaultRule {
        FaultRule::new("r", Reaction::answer(503))
    }

    /// Whether each of these requests, so many seconds after the rule was added, is hit.
    fn hits(rule: FaultRule, requests: &[(u64, f64)]) -> (Vec<bool>, u64) {
        let start = Clock::machine().now();
        let active = ActiveRule::new(rule, start);
        let taken = requests
            .iter()
            .map(|(second, dice)| active.takes(&seen(), start + Duration::from_secs(*second), || *dice))
            .collect();
        (taken, active.hits())
    }

    #[test]
    fn a_rule_hits_as_often_and_as_long_as_it_says() {
        const S: fn(u64) -> Duration = Duration::from_secs;
        let now = [(0, 0.5); 4];
        let later = [(0, 0.5), (5, 0.5), (14, 0.5), (15, 0.5)];
        let cases = [
            (rule(), &now, [true, true, true, true], "always"),
            (rule().hits_max(2), &now, [true, true, false, false], "twice"),
            (rule().skips(1).hits_max(2), &now, [false, true, true, false], "the second and third"),
            (rule().begins_after(S(5)).lasts(S(10)), &later, [false, true, true, false], "for ten seconds"),
            (rule().probability(0.4), &now, [false, false, false, false], "the dice say no"),
            (rule().probability(0.6), &now, [true, true, true, true], "the dice say yes"),
            (rule().when(FaultCondition::any().client(1)), &now, [false; 4], "it is about another"),
        ];
        for (rule, requests, expected, why) in cases {
            let (taken, count) = hits(rule, requests);
            assert_eq!(taken, expected, "{why}");
            assert_eq!(count, expected.iter().filter(|hit| **hit).count() as u64, "{why}");
        }
    }
}
