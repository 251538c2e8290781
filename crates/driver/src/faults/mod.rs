//! What goes wrong on purpose: rules that make requests fail below sharding. Feature `fault-injection`.
//!
//! A [`FaultInjectingHttpClientFactory`] wraps the real factory, so that every shard's client asks the rules
//! first. Above it nothing knows: an injected failure counts against its shard, is retried, fails over and
//! shows in diagnostics like a real one.
//!
//! ```
//! use perihelion_driver::OperationKind;
//! use perihelion_driver::faults::{FaultCondition, FaultInjector, FaultRule, Reaction};
//!
//! let faults = FaultInjector::new(42);
//! faults.add(
//!     FaultRule::new("west is full", Reaction::answer(503))
//!         .when(FaultCondition::any().operation(OperationKind::Read).region("West US"))
//!         .hits_max(3),
//! );
//! assert_eq!(faults.hits("west is full"), Some(0));
//! assert!(faults.remove("west is full"));
//! ```

mod client;
mod condition;
mod reaction;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Instant;

pub use self::client::{FaultInjectingHttpClient, FaultInjectingHttpClientFactory};
pub use self::condition::{FaultCondition, Seen};
pub use self::reaction::{Outcome, Reaction};
use self::rule::ActiveRule;
pub use self::rule::FaultRule;
use crate::clock::Clock;
use crate::routing::Region;

/// The rules in force. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct FaultInjector(Arc<Inner>);

struct Inner {
    rules: RwLock<Vec<Arc<ActiveRule>>>,
    /// Which region is behind a host and port.
    regions: RwLock<HashMap<String, Region>>,
    draws: AtomicU64,
    clock: Clock,
}

impl FaultInjector {
    /// No rules. Rules with a probability draw from `seed`: the same seed and the same requests, one after
    /// the other, meet the same faults.
    pub fn new(seed: u64) -> FaultInjector {
        FaultInjector::with_clock(seed, Clock::machine())
    }

    /// The same, in another time.
    pub fn with_clock(seed: u64, clock: Clock) -> FaultInjector {
        FaultInjector(Arc::new(Inner {
            rules: RwLock::default(),
            regions: RwLock::default(),
            draws: AtomicU64::new(seed),
            clock,
        }))
    }

    /// Adds a rule, in place of one of the same name. Of several that match a request, the first decides.
    pub fn add(&self, rule: FaultRule) {
        let added = Arc::new(ActiveRule::new(rule, self.0.clock.now()));
        let mut rules = self.write();
        match rules.iter_mut().find(|known| known.name() == added.name()) {
            Some(known) => *known = added,
            None => rules.push(added),
        }
    }

    /// Ends a rule; `false` if there is none of this name. What it holds up goes on being held up.
    pub fn remove(&self, name: &str) -> bool {
        let mut rules = self.write();
        let before = rules.len();
        rules.retain(|rule| rule.name() != name);
        rules.len() < before
    }

    /// Ends all rules.
    pub fn clear(&self) {
        self.write().clear();
    }

    /// How many requests a rule has hit.
    pub fn hits(&self, name: &str) -> Option<u64> {
        self.read().iter().find(|rule| rule.name() == name).map(|rule| rule.hits())
    }

    /// Says which region is behind a host and port (`host:port`). The driver does so by itself for every
    /// endpoint it uses.
    pub fn region_is(&self, authority: &str, region: &Region) {
        let known = |regions: &HashMap<String, Region>| {
            regions.get(authority).is_some_and(|known| known.as_str() == region.as_str())
        };
        if !known(&self.0.regions.read().unwrap_or_else(PoisonError::into_inner)) {
            let mut regions = self.0.regions.write().unwrap_or_else(PoisonError::into_inner);
            regions.insert(authority.to_owned(), region.clone());
        }
    }

    fn region_of(&self, authority: &str) -> Option<Region> {
        self.0.regions.read().unwrap_or_else(PoisonError::into_inner).get(authority).cloned()
    }

    /// What happens to a request: the reaction of the first rule that hits it.
    fn reaction(&self, seen: &Seen<'_>, now: Instant) -> Option<Reaction> {
        let rules = self.read();
        rules.iter().find(|rule| rule.takes(seen, now, || self.draw())).map(|rule| rule.reaction().clone())
    }

    /// A draw in `0.0..1.0`: splitmix64, so that a seed says everything.
    fn draw(&self) -> f64 {
        let x = self.0.draws.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn clock(&self) -> &Clock {
        &self.0.clock
    }

    fn read(&self) -> RwLockReadGuard<'_, Vec<Arc<ActiveRule>>> {
        self.0.rules.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<Arc<ActiveRule>>> {
        self.0.rules.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FaultInjector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.read().iter().map(|rule| rule.name())).finish()
    }
}
