//! The rules in force, and the decision per request.
//!
//! In: rules, added and removed while requests run; the attributes of each request. Out: what happens to that
//! request ([`FaultDecision`]), the state of each region's port, and how often every rule has applied.
//!
//! For each request the rules are evaluated in the order in which they were added, faults of whole regions first. Every
//! rule that applies adds its delay; the first that also responds, or breaks the connection, ends the evaluation. So
//! delays add up, responses do not, and a rule counts only the requests that it was evaluated for.

mod active;
mod report;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use smol_str::{SmolStr, format_smolstr};

use self::active::ActiveRule;
pub use self::report::{RuleReport, RuleState};
use crate::delay::DELAY_MAX;
use crate::effect::{ConnectionEffect, Delayed, FaultEffect};
use crate::filter::RequestAttributes;
use crate::invalid::InvalidRule;
use crate::region_fault::{RegionFault, region_fault_id};
use crate::rule::{FaultRule, REGION_FAULT_PREFIX};
use crate::schedule::SchedulePhase;
use crate::support::Applier;

/// How many rules can be in force at once.
pub const RULES_MAX: usize = 64;
/// How many ended rules are remembered for reports.
const ENDED_MAX: usize = 32;

/// The rules that one applier obeys. Time is an argument everywhere: the time since a fixed start of the
/// applier's choice.
#[derive(Debug)]
pub struct FaultSet {
    applier: Applier,
    /// Whether any rule can apply to a request. All that a request costs while none can.
    has_request_rules: AtomicBool,
    rules: ArcSwap<RuleList>,
    /// Locked by those who change the rules.
    history: Mutex<History>,
}

/// The rules at one time, in their order.
#[derive(Debug, Default)]
struct RuleList {
    seed: u64,
    rules: Vec<Arc<ActiveRule>>,
}

/// What is only needed to change rules and to report on them.
#[derive(Debug, Default)]
struct History {
    ended: VecDeque<Arc<ActiveRule>>,
    last_number: u64,
}

/// What happens to one request.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FaultDecision {
    /// How long the request waits.
    pub request_delay: Duration,
    /// How long its response waits.
    pub response_delay: Duration,
    /// The effect of the rule that responds or breaks the connection.
    pub effect: Option<Arc<FaultEffect>>,
    /// The ids of the rules that apply, in their order. If there is an effect, it is that of the last one.
    pub rules: Vec<SmolStr>,
}

/// The state of a region's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortState {
    /// The port accepts connections and requests.
    #[default]
    Open,
    /// The port is closed.
    Refused,
    /// The port accepts connections and never responds.
    Silent,
}

impl FaultSet {
    /// No rules. Probabilities and delays are decided by random numbers of `seed`.
    pub fn new(applier: Applier, seed: u64) -> FaultSet {
        FaultSet {
            applier,
            has_request_rules: AtomicBool::new(false),
            rules: ArcSwap::from_pointee(RuleList { seed, rules: Vec::new() }),
            history: Mutex::default(),
        }
    }

    /// Adds a rule, or replaces the one with the same id in its place. Returns the id.
    pub fn add(&self, rule: FaultRule, now: Duration) -> Result<String, InvalidRule> {
        rule.validate()?;
        rule.supported_by(self.applier)?;
        self.check_overlap(&rule)?;
        self.put(rule, now)
    }

    /// Gives a region this fault in place of the one it has, for a time or until it is removed.
    pub fn set_region_fault(
        &self,
        region: &str,
        fault: RegionFault,
        duration: Option<Duration>,
        now: Duration,
    ) -> Result<(), InvalidRule> {
        let rule = fault.rule(region, duration);
        rule.validate()?;
        rule.supported_by(self.applier)?;
        self.put(rule.named(&region_fault_id(region)), now).map(drop)
    }

    /// Removes a rule, or the memory of one that ended. Whether there was one.
    pub fn remove(&self, id: &str) -> bool {
        let mut history = self.history();
        let remembered = history.ended.len();
        history.ended.retain(|ended| ended.id != id);
        let current = self.rules.load();
        let rules: Vec<_> = current.rules.iter().filter(|rule| rule.id != id).cloned().collect();
        let removed = rules.len() < current.rules.len();
        if removed {
            self.publish(RuleList { seed: current.seed, rules });
        }
        removed || history.ended.len() < remembered
    }

    /// Removes every rule, the faults of whole regions too. Returns how many rules were in force.
    pub fn clear(&self, now: Duration) -> usize {
        let mut history = self.history();
        self.move_ended(&mut history, now);
        history.ended.clear();
        let current = self.rules.load();
        self.publish(RuleList { seed: current.seed, rules: Vec::new() });
        current.rules.len()
    }

    /// Reports on every rule in force in its order, then on those that ended, the last one first.
    pub fn list(&self, now: Duration) -> Vec<RuleReport> {
        let mut history = self.history();
        self.move_ended(&mut history, now);
        let list = self.rules.load();
        list.rules.iter().chain(history.ended.iter().rev()).map(|rule| rule.report(now)).collect()
    }

    /// Reports on one rule, in force or remembered.
    pub fn report(&self, id: &str, now: Duration) -> Option<RuleReport> {
        self.list(now).into_iter().find(|report| report.rule.id.as_deref() == Some(id))
    }

    /// The seed of the random numbers.
    pub fn seed(&self) -> u64 {
        self.rules.load().seed
    }

    /// Starts the random numbers anew. Rules count from zero again, so the same requests get the same faults.
    pub fn set_seed(&self, seed: u64) {
        // Held until the rules are published, so that no other change is lost.
        let _history = self.history();
        let current = self.rules.load();
        let rules = current.rules.iter().map(|rule| Arc::new(rule.restarted(seed))).collect();
        self.publish(RuleList { seed, rules });
    }

    /// Whether any rule can apply to a request: one relaxed load.
    #[inline]
    pub fn has_request_rules(&self) -> bool {
        // Relaxed: a request that misses a rule which is just being added might as well have come before it, and
        // the rules themselves are published by the swap.
        self.has_request_rules.load(Ordering::Relaxed)
    }

    /// Decides what happens to a request. The cost grows with the number of rules.
    pub fn decide(&self, request: &RequestAttributes<'_>, now: Duration) -> FaultDecision {
        let list = self.rules.load();
        let decision = list.decide(request, now);
        if list.rules.iter().any(|rule| rule.has_ended(now)) {
            // Later requests do not evaluate rules that are over.
            self.move_ended(&mut self.history(), now);
        }
        decision
    }

    /// The state that a region's port should have, and for how long if no rule is added or removed.
    pub fn port_state(&self, region: &str, now: Duration) -> (PortState, Option<Duration>) {
        self.rules.load().port_state(region, now)
    }

    /// Counts connections of a region that the rule about its port refused, reset or swallowed. Returns the id of
    /// that rule; none if no rule closes or silences the port now.
    pub fn count_connections(&self, region: &str, count: u64, now: Duration) -> Option<SmolStr> {
        let list = self.rules.load();
        let rule = list.rules.iter().find(|rule| {
            rule.rule.is_on_port()
                && rule.rule.filter.matches_region(Some(region))
                && matches!(rule.phase(now), SchedulePhase::Active { .. })
        })?;
        rule.count_connections(region, count);
        Some(rule.id.clone())
    }

    /// Rejects a rule that could never apply, because another one ends the evaluation for all its requests.
    fn check_overlap(&self, rule: &FaultRule) -> Result<(), InvalidRule> {
        let list = self.rules.load();
        let mut others = list.rules.iter().filter(|other| rule.id.as_deref() != Some(other.id.as_str()));
        let Some(ActiveRule { id, .. }) = others.find(|other| other.rule.hides(rule)).map(|other| &**other)
        else {
            return Ok(());
        };
        let command = match self.applier {
            Applier::Account => format!(" (peri fault rm {id})"),
            Applier::Driver => String::new(),
        };
        Err(InvalidRule::new(format!(
            "the rule '{id}' already decides about every request that this one is about, so this one would never \
             apply; remove it first{command}, or add this one under its id to replace it"
        )))
    }

    /// Adds a rule that was checked.
    fn put(&self, mut rule: FaultRule, now: Duration) -> Result<String, InvalidRule> {
        let mut history = self.history();
        self.move_ended(&mut history, now);
        let current = self.rules.load();
        let id = rule.id.take().map_or_else(|| history.unused_id(&current), SmolStr::from);
        rule.id = Some(id.to_string());
        let position = current.rules.iter().position(|rule| rule.id == id);
        if position.is_none() && current.rules.len() >= RULES_MAX {
            return Err(InvalidRule::new(format!(
                "there are {RULES_MAX} rules, which is the most there can be; remove one first"
            )));
        }
        let added = Arc::new(ActiveRule::new(id.clone(), rule, current.seed, now));
        let mut rules = current.rules.clone();
        match position {
            Some(position) => rules[position] = added,
            // The fault of a whole region comes before what single rules add to it.
            None if id.starts_with(REGION_FAULT_PREFIX) => rules.insert(0, added),
            None => rules.push(added),
        }
        history.ended.retain(|ended| ended.id != id);
        self.publish(RuleList { seed: current.seed, rules });
        Ok(id.to_string())
    }

    /// Moves rules that are over from the list to the memory of them.
    fn move_ended(&self, history: &mut History, now: Duration) {
        let current = self.rules.load();
        let (ended, rules): (Vec<_>, Vec<_>) =
            current.rules.iter().cloned().partition(|rule| rule.has_ended(now));
        if ended.is_empty() {
            return;
        }
        history.ended.extend(ended);
        while history.ended.len() > ENDED_MAX {
            history.ended.pop_front();
        }
        self.publish(RuleList { seed: current.seed, rules });
    }

    /// Publishes a new list. Callers hold the lock of the history, so that no change is lost.
    fn publish(&self, list: RuleList) {
        let has_request_rules = list.rules.iter().any(|rule| !rule.rule.is_on_port());
        self.rules.store(Arc::new(list));
        // Relaxed: see `has_request_rules`.
        self.has_request_rules.store(has_request_rules, Ordering::Relaxed);
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    fn unused_id(&mut self, list: &RuleList) -> SmolStr {
        loop {
            self.last_number += 1;
            let id = format_smolstr!("fault-{}", self.last_number);
            if list.rules.iter().all(|rule| rule.id != id) {
                return id;
            }
        }
    }
}

impl RuleList {
    fn decide(&self, request: &RequestAttributes<'_>, now: Duration) -> FaultDecision {
        let mut decision = FaultDecision::default();
        for rule in &self.rules {
            let Some(mut rng) = rule.apply(request, now) else { continue };
            decision.rules.push(rule.id.clone());
            let effect = &rule.rule.effect;
            if let Some(delay) = &effect.delay {
                let total = match effect.delayed {
                    Delayed::Request => &mut decision.request_delay,
                    Delayed::Response => &mut decision.response_delay,
                };
                *total = (*total + delay.sample(&mut rng)).min(DELAY_MAX);
            }
            if effect.ends_evaluation() {
                decision.effect = Some(Arc::new(effect.clone()));
                break;
            }
        }
        decision
    }

    fn port_state(&self, region: &str, now: Duration) -> (PortState, Option<Duration>) {
        let concerned = self
            .rules
            .iter()
            .filter(|rule| rule.rule.is_on_port() && rule.rule.filter.matches_region(Some(region)));
        let mut state = PortState::Open;
        let mut changes_in: Option<Duration> = None;
        for rule in concerned {
            let phase = rule.phase(now);
            if state == PortState::Open && matches!(phase, SchedulePhase::Active { .. }) {
                state = match rule.rule.effect.connection {
                    Some(ConnectionEffect::Refuse) => PortState::Refused,
                    _ => PortState::Silent,
                };
            }
            changes_in = match (changes_in, phase.changes_in()) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        (state, changes_in)
    }
}
