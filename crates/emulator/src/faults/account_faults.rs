//! The rules of one account, with its regions, a count of delayed requests and a notification of changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::account::events::EventLog;
use engine::regions::{RegionId, Regions};
use faults::{
    Applier, FaultDecision, FaultRule, FaultSet, InvalidRule, PortState, RegionFault, RequestAttributes,
    RuleReport,
};
use parking_lot::Mutex;
use smol_str::SmolStr;
use tokio::sync::watch;

/// Pairs of rule and region whose connections are counted.
const CUT_RULES_MAX: usize = 512;

/// The rules of one account. Time is an argument; [`Faults`](super::Faults) passes the time of its clock.
#[derive(Debug)]
pub(crate) struct AccountFaults {
    rules: FaultSet,
    regions: Arc<Regions>,
    /// Where what happens to regions and their ports is recorded.
    events: Arc<EventLog>,
    /// Connections that were refused, reset or swallowed, by rule and region, since the start.
    cut_connections: Mutex<BTreeMap<(SmolStr, String), u64>>,
    /// Counts the changes of the rules.
    changes: watch::Sender<u64>,
    /// Counts the requests and responses that a delay holds up.
    delayed: watch::Sender<u64>,
}

/// One request, or its response, that a delay holds up. Dropping it, for any reason, ends the count.
#[derive(Debug)]
pub(crate) struct DelayedRequest<'a>(&'a watch::Sender<u64>);

impl Drop for DelayedRequest<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|delayed| *delayed -= 1);
    }
}

impl AccountFaults {
    /// No rules, in an account with these regions.
    pub(crate) fn new(regions: Arc<Regions>, seed: u64) -> AccountFaults {
        AccountFaults {
            rules: FaultSet::new(Applier::Account, seed),
            regions,
            events: Arc::default(),
            cut_connections: Mutex::default(),
            changes: watch::Sender::new(0),
            delayed: watch::Sender::new(0),
        }
    }

    /// Records what happens in this log.
    pub(crate) fn with_events(self, events: Arc<EventLog>) -> AccountFaults {
        AccountFaults { events, ..self }
    }

    /// The log of what happens to the account.
    pub(crate) fn events(&self) -> &EventLog {
        &self.events
    }

    /// Counts connections to a region that its port refused, reset or swallowed. Returns the rule that did so.
    pub(crate) fn count_connections(&self, region: RegionId, count: u64, now: Duration) -> Option<SmolStr> {
        let region = self.regions.current().region(region).name.clone();
        let rule = self.rules.count_connections(&region, count, now)?;
        let mut cut = self.cut_connections.lock();
        let known = cut.len();
        let key = (rule.clone(), region);
        if known < CUT_RULES_MAX || cut.contains_key(&key) {
            *cut.entry(key).or_default() += count;
        }
        Some(rule)
    }

    /// Connections that were refused, reset or swallowed since the start, by rule and region.
    pub(crate) fn cut_connections(&self) -> BTreeMap<(SmolStr, String), u64> {
        self.cut_connections.lock().clone()
    }

    /// Adds a rule, or replaces the one with the same id in its place. Returns the id.
    pub(crate) fn add(&self, rule: FaultRule, now: Duration) -> Result<String, InvalidRule> {
        self.check_regions(&rule)?;
        let id = self.rules.add(rule, now)?;
        self.changed();
        Ok(id)
    }

    /// Gives a region this fault in place of the one it has, for a time or until it is removed.
    pub(crate) fn set_region_fault(
        &self,
        region: &str,
        fault: RegionFault,
        duration: Option<Duration>,
        now: Duration,
    ) -> Result<(), InvalidRule> {
        self.rules.set_region_fault(region, fault, duration, now)?;
        self.changed();
        Ok(())
    }

    /// Removes a rule, or the memory of one that ended. Whether there was one.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let removed = self.rules.remove(id);
        self.changed();
        removed
    }

    /// Removes every rule, the faults of whole regions too. Returns how many rules were in force.
    pub(crate) fn clear(&self, now: Duration) -> usize {
        let removed = self.rules.clear(now);
        self.changed();
        removed
    }

    /// Reports on every rule in force in its order, then on those that ended, the last one first.
    pub(crate) fn list(&self, now: Duration) -> Vec<RuleReport> {
        self.rules.list(now)
    }

    /// The seed of the random numbers.
    pub(crate) fn seed(&self) -> u64 {
        self.rules.seed()
    }

    /// Starts the random numbers and the counts of the rules anew.
    pub(crate) fn set_seed(&self, seed: u64) {
        self.rules.set_seed(seed);
        self.changed();
    }

    /// Whether any rule can apply to a request: one relaxed load.
    #[inline]
    pub(crate) fn has_request_rules(&self) -> bool {
        self.rules.has_request_rules()
    }

    /// Decides what happens to a request to a region, or to no region in particular. `request` says everything
    /// but the region.
    pub(crate) fn decide(
        &self,
        request: RequestAttributes<'_>,
        region: Option<RegionId>,
        now: Duration,
    ) -> FaultDecision {
        let topology = self.regions.current();
        let found = topology.regions().find(|(id, _)| Some(*id) == region);
        let region = found.map(|(_, region)| region.name.as_str());
        self.rules.decide(&RequestAttributes { region, ..request }, now)
    }

    /// The state that a region's port should have, and for how long if no rule is added or removed.
    pub(crate) fn port_state(&self, region: RegionId, now: Duration) -> (PortState, Option<Duration>) {
        let topology = self.regions.current();
        self.rules.port_state(&topology.region(region).name, now)
    }

    /// Counts the changes of the rules; wait for the next one with `changed`.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// A request, or its response, begins to wait, until the guard is dropped.
    pub(crate) fn begin_delay(&self) -> DelayedRequest<'_> {
        self.delayed.send_modify(|delayed| *delayed += 1);
        DelayedRequest(&self.delayed)
    }

    /// How many requests and responses wait; follow it with `changed`.
    pub(crate) fn delayed(&self) -> watch::Receiver<u64> {
        self.delayed.subscribe()
    }

    /// The regions of the account.
    pub(crate) fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Rejects a rule about a region that the account does not have.
    fn check_regions(&self, rule: &FaultRule) -> Result<(), InvalidRule> {
        let topology = self.regions.current();
        let mut unknown = rule.filter.regions.iter().filter_map(|name| topology.find(name).err());
        unknown.next().map_or(Ok(()), |error| Err(InvalidRule::new(error.to_string())))
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use protocol::account::ConsistencyLevel;

    use super::*;
    use engine::regions::{Lag, Region, Topology};

    fn account_faults() -> AccountFaults {
        let regions = ["West US", "East US", "North Europe"].map(|name| Region::new(name, 0)).to_vec();
        let topology = Topology::new(regions, false, ConsistencyLevel::Session, Lag::NONE).unwrap();
        AccountFaults::new(Arc::new(Regions::new(topology)), 1)
    }

    #[test]
    fn a_rule_about_an_unknown_region_is_rejected_with_those_there_are() {
        let faults = account_faults();
        let error = faults.add(FaultRule::status(503, 0).in_region("Mars"), Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("'East US', 'North Europe'"), "{error}");
        assert!(!faults.has_request_rules());
    }

    #[test]
    fn a_rule_applies_in_the_region_it_names_however_it_is_spelled() {
        let faults = account_faults();
        faults.add(FaultRule::status(503, 0).in_region("eastus"), Duration::ZERO).unwrap();
        let is_hit = |region| {
            faults
                .decide(RequestAttributes::default(), Some(RegionId(region)), Duration::ZERO)
                .effect
                .is_some()
        };
        assert_eq!([0, 1, 2, 9].map(is_hit), [false, true, false, false], "there is no region 9");
    }

    #[test]
    fn changes_are_counted_so_that_ports_follow_them() {
        let faults = account_faults();
        let mut changes = faults.changes();
        let refuse = RegionFault::Down(faults::DownMode::Refused);
        faults.set_region_fault("East US", refuse, None, Duration::ZERO).unwrap();
        assert!(changes.has_changed().unwrap());
        assert_eq!(faults.port_state(RegionId(1), Duration::ZERO), (PortState::Refused, None));
        assert_eq!(faults.port_state(RegionId(0), Duration::ZERO), (PortState::Open, None));
        changes.mark_unchanged();
        assert!(faults.remove("region:eastus") && changes.has_changed().unwrap());
    }
}
