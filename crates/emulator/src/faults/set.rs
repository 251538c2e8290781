//! The faults in force.
//!
//! In: rules, added and removed while requests run; the facts of each request. Out: what is to happen
//! to that request, and what has happened so far.
//!
//! A request walks the rules in the order in which they were added, the switches of regions first. Every rule that strikes it adds
//! its delay; the first that also answers, or does something to the connection, ends the walk. So
//! delays add up, answers do not, and a rule is counted only for requests that got as far as it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use serde::Serialize;
use smol_str::{SmolStr, format_smolstr};
use tokio::sync::watch;

use super::delay::DELAY_MAX;
use super::draw::Draw;
use super::effect::{ConnectionEffect, Delayed, Effect};
use super::filter::Facts;
use super::rule::{BadRule, Phase, Rule, SWITCH_PREFIX};
use clock::HumanDuration;
use engine::regions::{RegionId, Regions};

/// Rules at once.
pub const RULES_MAX: usize = 64;
/// Ended rules that are remembered, for those who ask what happened.
const ENDED_MAX: usize = 32;

/// The faults of one account: holds and swaps, and counts. Time is an argument; see
/// [`Faults`](super::Faults) for the handle that knows it.
#[derive(Debug)]
pub(crate) struct FaultSet {
    /// Whether any rule looks at requests. All that a request costs while none does.
    any: AtomicBool,
    rules: ArcSwap<Rules>,
    book: Mutex<Book>,
    /// Counts changes, for those who have to act on them.
    changes: watch::Sender<u64>,
    /// Requests and answers that wait.
    held: watch::Sender<u64>,
    regions: Arc<Regions>,
}

/// The rules at one moment, in their order.
#[derive(Debug, Default)]
struct Rules {
    seed: u64,
    live: Vec<Arc<Live>>,
}

/// What only those who change rules look at.
#[derive(Debug, Default)]
struct Book {
    ended: VecDeque<Arc<Live>>,
    next_number: u64,
}

/// A rule and what became of it.
#[derive(Debug)]
struct Live {
    id: SmolStr,
    rule: Rule,
    /// The regions named; all when there are none.
    regions: Vec<RegionId>,
    /// By uptime.
    added_at: Duration,
    /// Requests it was about.
    met: AtomicU64,
    /// Requests it struck.
    struck: AtomicU64,
}

/// What is to happen to a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strike {
    /// How long the request waits.
    pub(crate) before: Duration,
    /// How long its answer waits.
    pub(crate) after: Duration,
    /// The effect of the rule that answers or treats the connection.
    pub(crate) outcome: Option<Arc<Effect>>,
    /// The ids of the rules that struck, in their order.
    pub(crate) by: Vec<SmolStr>,
}

/// One request that waits.
#[derive(Debug)]
pub(crate) struct Held<'a>(&'a watch::Sender<u64>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held -= 1);
    }
}

/// A region's port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Doorway {
    /// Answers.
    #[default]
    Open,
    /// Closed.
    Refused,
    /// Accepts and never answers.
    Silent,
}

/// A rule as it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// The rule, under the id it got.
    #[serde(flatten)]
    pub rule: Rule,
    /// Whether it has started, or is over.
    pub state: RuleState,
    /// Requests it was about.
    pub met: u64,
    /// Requests it struck.
    pub struck: u64,
    /// Time until it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_in: Option<HumanDuration>,
    /// Time until it ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_in: Option<HumanDuration>,
}

/// Where a rule stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RuleState {
    /// Not started yet.
    Waiting,
    /// Strikes.
    Active,
    /// Over: its time has passed, or it struck as often as it should.
    Ended,
}

impl FaultSet {
    /// No faults, in an account with these regions.
    pub(crate) fn new(regions: Arc<Regions>, seed: u64) -> FaultSet {
        FaultSet {
            any: AtomicBool::new(false),
            rules: ArcSwap::from_pointee(Rules { seed, live: Vec::new() }),
            book: Mutex::default(),
            changes: watch::Sender::new(0),
            held: watch::Sender::new(0),
            regions,
        }
    }

    /// Adds a rule, or replaces the one with the same id in its place. Returns the id.
    pub(crate) fn add(&self, rule: Rule, now: Duration) -> Result<String, BadRule> {
        rule.check(&self.regions.current())?;
        self.check_overlap(&rule)?;
        self.put(rule, now)
    }

    /// Refuses a rule that could never strike, because another one has the last word on all its requests.
    fn check_overlap(&self, rule: &Rule) -> Result<(), BadRule> {
        let rules = self.rules.load();
        let others = rules.live.iter().filter(|live| rule.id.as_deref() != Some(live.id.as_str()));
        match others.map(|live| (&live.id, &live.rule)).find(|(_, other)| other.hides(rule)) {
            None => Ok(()),
            Some((id, _)) => Err(BadRule(format!(
                "the rule '{id}' already decides about every request that this one is about, so this one would \
                 never strike; remove it first (peri fault rm {id}), or add this one under its id to replace it"
            ))),
        }
    }

    /// Adds a rule that was checked, or needs no check.
    pub(crate) fn put(&self, mut rule: Rule, now: Duration) -> Result<String, BadRule> {
        let mut book = self.book();
        self.retire_ended(&mut book, now);
        let current = self.rules.load();
        let id = rule.id.take().map_or_else(|| book.free_id(&current), SmolStr::from);
        rule.id = Some(id.to_string());
        let place = current.live.iter().position(|live| live.id == id);
        if place.is_none() && current.live.len() >= RULES_MAX {
            return Err(BadRule(format!(
                "there are {RULES_MAX} rules, which is the most there can be; remove one first"
            )));
        }
        let regions = rule.regions(&self.regions.current());
        let live = Arc::new(Live::new(id.clone(), rule, regions, now));
        let mut next = current.live.clone();
        match place {
            Some(place) => next[place] = live,
            // A region's trouble comes before what single rules add to it.
            None if is_a_switch(&id) => next.insert(0, live),
            None => next.push(live),
        }
        book.ended.retain(|ended| ended.id != id);
        self.publish(Rules { seed: current.seed, live: next });
        Ok(id.to_string())
    }

    /// Removes a rule, or the memory of one that ended. Whether there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let mut book = self.book();
        let remembered = book.ended.len();
        book.ended.retain(|ended| ended.id != id);
        let current = self.rules.load();
        let live: Vec<_> = current.live.iter().filter(|live| live.id != id).cloned().collect();
        let removed = live.len() < current.live.len();
        if removed {
            self.publish(Rules { seed: current.seed, live });
        }
        removed || book.ended.len() < remembered
    }

    /// Removes everything, the switches of regions too. Returns how many rules were in force.
    pub(crate) fn clear(&self, now: Duration) -> usize {
        let mut book = self.book();
        self.retire_ended(&mut book, now);
        book.ended.clear();
        let current = self.rules.load();
        self.publish(Rules { seed: current.seed, live: Vec::new() });
        current.live.len()
    }

    /// Every rule in its order, then those that ended, the last one first.
    pub(crate) fn list(&self, now: Duration) -> Vec<Report> {
        let mut book = self.book();
        self.retire_ended(&mut book, now);
        let rules = self.rules.load();
        rules.live.iter().chain(book.ended.iter().rev()).map(|live| live.report(now)).collect()
    }

    /// Where chance starts from.
    pub(crate) fn seed(&self) -> u64 {
        self.rules.load().seed
    }

    /// Starts chance anew: the rules count from zero, so the same requests meet the same faults.
    pub(crate) fn set_seed(&self, seed: u64) {
        let _turn = self.book();
        let current = self.rules.load();
        let live = current.live.iter().map(|live| Arc::new(live.anew())).collect();
        self.publish(Rules { seed, live });
    }

    /// Whether no rule looks at requests: one relaxed load.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.any.load(Ordering::Relaxed)
    }

    /// What is to happen to a request. Grows with the number of rules.
    pub(crate) fn strike(&self, facts: &Facts<'_>, now: Duration) -> Strike {
        let rules = self.rules.load();
        let strike = rules.strike(facts, now);
        if rules.live.iter().any(|live| live.is_over(now)) {
            // Nobody asks twice about a rule that is over.
            self.retire_ended(&mut self.book(), now);
        }
        strike
    }

    /// How a region's port is to be, and for how long if nothing else changes.
    pub(crate) fn doorway(&self, region: RegionId, now: Duration) -> (Doorway, Option<Duration>) {
        self.rules.load().doorway(region, now)
    }

    /// Counts changes; wait for the next one with `changed`.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A request, or its answer, begins to wait. It ends when the guard is dropped, for whatever reason.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.held.send_modify(|held| *held += 1);
        Held(&self.held)
    }

    /// How many wait; follow it with `changed`.
    pub(crate) fn held(&self) -> watch::Receiver<u64> {
        self.held.subscribe()
    }

    /// The account's regions.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Moves rules that are over from the list to the memory of them.
    fn retire_ended(&self, book: &mut Book, now: Duration) {
        let current = self.rules.load();
        let (over, live): (Vec<_>, Vec<_>) = current.live.iter().cloned().partition(|live| live.is_over(now));
        if over.is_empty() {
            return;
        }
        book.ended.extend(over);
        while book.ended.len() > ENDED_MAX {
            book.ended.pop_front();
        }
        self.publish(Rules { seed: current.seed, live });
    }

    /// Only ever called by whoever holds the book, so no change is lost.
    fn publish(&self, rules: Rules) {
        self.any.store(rules.live.iter().any(|live| !live.is_the_doors()), Ordering::Relaxed);
        self.rules.store(Arc::new(rules));
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn free_id(&mut self, rules: &Rules) -> SmolStr {
        loop {
            self.next_number += 1;
            let id = format_smolstr!("fault-{}", self.next_number);
            if rules.live.iter().all(|live| live.id != id) {
                return id;
            }
        }
    }
}

impl Rules {
    fn strike(&self, facts: &Facts<'_>, now: Duration) -> Strike {
        let mut strike = Strike::default();
        for live in &self.live {
            let Some(draw) = live.meet(facts, now, self.seed) else { continue };
            strike.by.push(live.id.clone());
            let effect = &live.rule.effect;
            if let Some(delay) = &effect.delay {
                let wait = match effect.delayed {
                    Delayed::Request => &mut strike.before,
                    Delayed::Answer => &mut strike.after,
                };
                *wait = (*wait + delay.sample(draw.another())).min(DELAY_MAX);
            }
            if effect.decides() {
                strike.outcome = Some(Arc::new(effect.clone()));
                break;
            }
        }
        strike
    }

    fn doorway(&self, region: RegionId, now: Duration) -> (Doorway, Option<Duration>) {
        let concerned = self.live.iter().filter(|live| live.is_the_doors() && live.is_in(region));
        let mut state = Doorway::Open;
        let mut lasts: Option<Duration> = None;
        for live in concerned {
            let phase = live.phase(now);
            if state == Doorway::Open && matches!(phase, Phase::Active { .. }) {
                state = match live.rule.effect.connection {
                    Some(ConnectionEffect::Refuse) => Doorway::Refused,
                    _ => Doorway::Silent,
                };
            }
            lasts = match (lasts, phase.changes_in()) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        (state, lasts)
    }
}

impl Live {
    fn new(id: SmolStr, rule: Rule, regions: Vec<RegionId>, added_at: Duration) -> Live {
        Live { id, rule, regions, added_at, met: AtomicU64::new(0), struck: AtomicU64::new(0) }
    }

    /// The same rule, as if nothing had happened yet. Its time goes on.
    fn anew(&self) -> Live {
        Live::new(self.id.clone(), self.rule.clone(), self.regions.clone(), self.added_at)
    }

    /// Counts a request. The draw it gets, if the rule strikes it.
    fn meet(&self, facts: &Facts<'_>, now: Duration, seed: u64) -> Option<Draw> {
        let is_met = !self.is_the_doors()
            && matches!(self.phase(now), Phase::Active { .. })
            && self.rule.filter.accepts(facts, &self.regions);
        if !is_met {
            return None;
        }
        let n = self.met.fetch_add(1, Ordering::Relaxed);
        let draw = Draw::of(seed, &self.id, n);
        let more = |struck: u64| self.rule.count.is_none_or(|count| struck < count).then_some(struck + 1);
        let strikes = self.rule.strikes(n, draw)
            && self.struck.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        strikes.then_some(draw)
    }

    fn phase(&self, now: Duration) -> Phase {
        match self.rule.phase(now.saturating_sub(self.added_at)) {
            Phase::Active { .. } if self.is_used_up() => Phase::Ended,
            phase => phase,
        }
    }

    fn is_used_up(&self) -> bool {
        self.rule.count.is_some_and(|count| self.struck.load(Ordering::Relaxed) >= count)
    }

    fn is_over(&self, now: Duration) -> bool {
        self.phase(now) == Phase::Ended
    }

    fn is_the_doors(&self) -> bool {
        self.rule.effect.connection.is_some_and(ConnectionEffect::is_the_doors)
    }

    fn is_in(&self, region: RegionId) -> bool {
        self.regions.is_empty() || self.regions.contains(&region)
    }

    fn report(&self, now: Duration) -> Report {
        let (state, starts_in, ends_in) = match self.phase(now) {
            Phase::Waiting { starts_in } => {
                (RuleState::Waiting, Some(HumanDuration::remaining(starts_in)), None)
            }
            Phase::Active { ends_in } => (RuleState::Active, None, ends_in.map(HumanDuration::remaining)),
            Phase::Ended => (RuleState::Ended, None, None),
        };
        Report {
            rule: self.rule.clone(),
            state,
            met: self.met.load(Ordering::Relaxed),
            struck: self.struck.load(Ordering::Relaxed),
            starts_in,
            ends_in,
        }
    }
}

fn is_a_switch(id: &str) -> bool {
    id.starts_with(SWITCH_PREFIX)
}

#[cfg(test)]
mod tests;
