//! The handle on the faults of a running account, for tests in Rust and for the control port.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use faults::{
    Delay, DownMode, FaultRule, InvalidRule, PortState, RegionCondition, RegionFault, RuleReport, RuleState,
    region_fault_id,
};
use serde::Serialize;

use super::account_faults::AccountFaults;
use super::port_control::{PortControl, PortUnavailable};
use crate::clock::{Clock, Span};
use crate::gateway::Account;
use crate::regions::{Region, RegionId, Regions, TopologyError};

/// The faults of a running account. Cheap to clone; clones are the same faults.
#[derive(Clone, Debug)]
pub struct Faults {
    account: Arc<Account>,
    rules: Arc<AccountFaults>,
    ports: Arc<PortControl>,
    clock: Clock,
}

/// Why a fault could not be given or ended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The rule is invalid, or asks for what the account cannot do.
    #[error(transparent)]
    Rule(#[from] InvalidRule),
    /// The region does not exist, or cannot do that.
    #[error(transparent)]
    Region(#[from] TopologyError),
    /// A region's port is in use by another process.
    #[error(transparent)]
    Port(#[from] PortUnavailable),
}

impl Faults {
    pub(crate) fn new(account: Arc<Account>, ports: Arc<PortControl>, clock: Clock) -> Faults {
        let rules = Arc::clone(&account.faults);
        Faults { account, rules, ports, clock }
    }

    /// The faults of an account that is used without sockets. Rules about ports have nothing to close.
    pub fn without_ports(account: &Arc<Account>, clock: &Clock) -> Faults {
        let ports = PortControl::new(Arc::clone(&account.faults), clock.clone(), Vec::new());
        Faults::new(Arc::clone(account), Arc::new(ports), clock.clone())
    }

    /// Adds a rule, or replaces the one with the same id in its place. Returns the id.
    ///
    /// A rule that refuses connections has closed the port when this returns.
    pub fn add(&self, rule: FaultRule) -> Result<String, FaultError> {
        let id = self.rules.add(rule, self.clock.uptime())?;
        self.ports.apply_rules()?;
        Ok(id)
    }

    /// Removes a rule. Whether there was one.
    pub fn remove(&self, id: &str) -> Result<bool, FaultError> {
        let removed = self.rules.remove(id);
        self.ports.apply_rules()?;
        Ok(removed)
    }

    /// Removes every rule, the faults of whole regions too. Returns how many rules were in force.
    pub fn clear(&self) -> Result<usize, FaultError> {
        let removed = self.rules.clear(self.clock.uptime());
        self.ports.apply_rules()?;
        Ok(removed)
    }

    /// Reports on every rule in force in its order, then on those that ended, the last one first.
    pub fn list(&self) -> Vec<RuleReport> {
        self.rules.list(self.clock.uptime())
    }

    /// Reports on one rule, in force or remembered.
    pub fn get(&self, id: &str) -> Option<RuleReport> {
        self.list().into_iter().find(|report| report.rule.id.as_deref() == Some(id))
    }

    /// The seed of the random numbers that probabilities and delays are decided by.
    pub fn seed(&self) -> u64 {
        self.rules.seed()
    }

    /// Starts the random numbers anew. Rules count from zero again, so the same requests get the same faults.
    pub fn set_seed(&self, seed: u64) {
        self.rules.set_seed(seed);
    }

    /// How many requests a delay holds up at this time.
    pub fn delayed_requests(&self) -> u64 {
        *self.rules.delayed().borrow()
    }

    /// Waits until delays hold up exactly this many requests.
    pub async fn wait_for_delayed_requests(&self, count: u64) {
        // An error would mean that the sender is gone, and it lives as long as this handle.
        let _ = self.rules.delayed().wait_for(|delayed| *delayed == count).await;
    }

    /// A handle on one region; spaces and capitals in its name do not matter.
    pub fn region(&self, name: &str) -> Result<RegionControl, FaultError> {
        let topology = self.topology().current();
        let id = topology.find(name)?;
        let name = topology.region(id).name.clone();
        Ok(RegionControl { faults: self.clone(), name, duration: None })
    }

    /// The health of every region, by its name.
    pub fn regions(&self) -> BTreeMap<String, RegionHealth> {
        let topology = Arc::clone(&self.topology().current());
        let rules = self.list();
        let health = |(id, region): (RegionId, &Region)| {
            let fault_id = region_fault_id(&region.name);
            let is_its_fault = |report: &&RuleReport| {
                report.rule.id.as_deref() == Some(&fault_id) && report.state != RuleState::Ended
            };
            let rule = rules.iter().find(is_its_fault);
            let (port, problem) = self.ports.state(id);
            let health = RegionHealth {
                condition: rule.map(|report| RegionCondition::of(&report.rule.effect)).unwrap_or_default(),
                ends_in: rule.and_then(|report| report.ends_in),
                listens: port == PortState::Open,
                problem: problem.map(|problem| problem.to_string()),
            };
            (region.name.clone(), health)
        };
        topology.regions().map(health).collect()
    }

    fn topology(&self) -> &Regions {
        self.rules.regions()
    }
}

/// A handle on one region, for giving it faults and taking them away.
#[derive(Clone, Debug)]
pub struct RegionControl {
    faults: Faults,
    name: String,
    duration: Option<Duration>,
}

/// The health of one region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RegionHealth {
    /// What is wrong with the region as a whole.
    pub condition: RegionCondition,
    /// The time until its fault ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_in: Option<Span>,
    /// Whether the region's port is open and serves requests.
    pub listens: bool,
    /// Why the port does not have the state that the rules ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RegionControl {
    /// Makes the faults given through this handle end by themselves after this time.
    pub fn lasting(mut self, duration: Duration) -> RegionControl {
        self.duration = Some(duration);
        self
    }

    /// The health of the region; none if it was removed.
    pub fn health(&self) -> Option<RegionHealth> {
        self.faults.regions().remove(&self.name)
    }

    /// The region's display name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the region down in this way.
    pub fn down(&self, mode: DownMode) -> Result<(), FaultError> {
        self.inject(RegionFault::Down(mode))
    }

    /// Responds with 403/1008, as if the account were being removed from the region; it is still listed.
    pub fn drain(&self) -> Result<(), FaultError> {
        self.inject(RegionFault::Drain)
    }

    /// Makes every request to the region wait.
    pub fn slow(&self, delay: impl Into<Delay>) -> Result<(), FaultError> {
        self.inject(RegionFault::Slow(delay.into()))
    }

    /// Throttles every request to the region, with 100 ms as the time after which to retry.
    pub fn storm(&self) -> Result<(), FaultError> {
        self.inject(RegionFault::Storm { retry_after: None, share: None })
    }

    /// Gives the region this fault, in place of the one it has.
    pub fn inject(&self, fault: RegionFault) -> Result<(), FaultError> {
        let Faults { rules, ports, clock, .. } = &self.faults;
        rules.set_region_fault(&self.name, fault, self.duration, clock.uptime())?;
        Ok(ports.apply_rules()?)
    }

    /// Ends the fault of the region. Does nothing when it has none.
    pub fn up(&self) -> Result<(), FaultError> {
        self.faults.remove(&region_fault_id(&self.name)).map(|_| ())
    }

    /// Makes this the write region; writes to the one before get 403/3.
    pub fn fail_over(&self) -> Result<(), FaultError> {
        Ok(self.faults.account.fail_over(&self.name)?)
    }
}
