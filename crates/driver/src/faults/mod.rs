//! Fault injection in the driver: rules that make requests fail below sharding. Feature `fault-injection`.
//!
//! The rules are those of the crate `faults`, which the local account and `peri chaos` take too, as JSON, TOML or Rust.
//! A [`FaultInjectingHttpClientFactory`] wraps the real factory, so that every shard's client evaluates the rules
//! before it sends. The layers above do not know: an injected failure counts against its shard, is retried, fails over
//! and shows in diagnostics like a real one.
//!
//! ```
//! use perihelion_driver::faults::{FaultInjector, FaultRule, OperationKind};
//!
//! let faults = FaultInjector::new(42);
//! let full = FaultRule::status(503, 0).named("west-is-full").on(OperationKind::Read).in_region("West US").times(3);
//! faults.add(full)?;
//! faults.add(FaultRule::from_json(br#"{"id": "lost", "share": 0.1, "effect": {"connection": "closeAfter"}}"#)?)?;
//! assert_eq!(faults.hits("west-is-full"), Some(0));
//! assert!(faults.remove("lost"));
//!
//! // What only the account can do is an error.
//! let refuse = FaultRule::from_json(br#"{"effect": {"connection": "refuse"}}"#)?;
//! assert!(faults.add(refuse).unwrap_err().to_string().contains("failBeforeSending"));
//! # Ok::<(), perihelion_driver::faults::InvalidRule>(())
//! ```

mod attributes;
mod client;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ::faults::{Applier, FaultSet};
pub use ::faults::{
    ConnectionEffect, Delay, DelayPercentiles, DelayRange, Delayed, DistributionShape, FAULT_HEADER,
    FaultDecision, FaultEffect, FaultRule, HumanDuration, InvalidRule, OperationKind, Probability,
    RequestAttributes, RequestFilter, ResourceKind, RuleReport, RuleState, Schedule,
};

pub use self::client::{FaultInjectingHttpClient, FaultInjectingHttpClientFactory};
use crate::clock::Clock;
use crate::routing::Region;

/// The rules that a driver obeys, and the time they go by. Cheap to clone; all clones share the rules.
#[derive(Clone)]
pub struct FaultInjector(Arc<Shared>);

struct Shared {
    rules: FaultSet,
    /// The region behind a host and port.
    regions: RwLock<HashMap<String, Region>>,
    clock: Clock,
    started: Instant,
}

impl FaultInjector {
    /// No rules. Probabilities and delays are decided by random numbers of `seed`: the same seed and the same
    /// requests, one after the other, give the same faults.
    pub fn new(seed: u64) -> FaultInjector {
        FaultInjector::with_clock(seed, Clock::machine())
    }

    /// No rules yet, and schedules that go by this clock.
    pub fn with_clock(seed: u64, clock: Clock) -> FaultInjector {
        let rules = FaultSet::new(Applier::Driver, seed);
        let started = clock.now();
        FaultInjector(Arc::new(Shared { rules, regions: RwLock::default(), clock, started }))
    }

    /// Adds a rule, or replaces the one with the same id in its place. Returns the id.
    ///
    /// Delays of several rules add up; the first rule that responds or breaks the connection decides.
    pub fn add(&self, rule: FaultRule) -> Result<String, InvalidRule> {
        self.0.rules.add(rule, self.now())
    }

    /// Removes a rule; `false` if there is none with this id. Requests that it delays go on waiting.
    pub fn remove(&self, id: &str) -> bool {
        self.0.rules.remove(id)
    }

    /// Removes all rules and the memory of those that ended.
    pub fn clear(&self) {
        self.0.rules.clear(self.now());
    }

    /// Reports on every rule in force, then on those that ended, the last one first.
    pub fn list(&self) -> Vec<RuleReport> {
        self.0.rules.list(self.now())
    }

    /// How many requests a rule has hit; none if there is no such rule.
    pub fn hits(&self, id: &str) -> Option<u64> {
        self.0.rules.report(id, self.now()).map(|report| report.hits)
    }

    /// Sets the region behind a host and port (`host:port`). The driver does so by itself for every endpoint
    /// it uses.
    pub fn set_region(&self, authority: &str, region: &Region) {
        let is_known = |regions: &HashMap<String, Region>| {
            regions.get(authority).is_some_and(|known| known.as_str() == region.as_str())
        };
        if !is_known(&self.0.regions.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut regions = self.0.regions.write().unwrap_or_else(PoisonError::into_inner);
            regions.insert(authority.to_owned(), region.clone());
        }
    }

    /// The region behind a host and port, if it is known.
    fn region_of(&self, authority: &str) -> Option<Region> {
        self.0.regions.read().unwrap_or_else(PoisonError::into_inner).get(authority).cloned()
    }

    /// Whether any rule can apply to a request: one relaxed load.
    fn has_rules(&self) -> bool {
        self.0.rules.has_request_rules()
    }

    /// Decides what happens to a request.
    fn decide(&self, request: &RequestAttributes<'_>) -> FaultDecision {
        self.0.rules.decide(request, self.now())
    }

    fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The time since the injector was made, which the schedules of rules go by.
    fn now(&self) -> Duration {
        self.0.clock.now().saturating_duration_since(self.0.started)
    }
}

impl fmt::Debug for FaultInjector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list().into_iter().filter_map(|report| report.rule.id)).finish()
    }
}
