//! Control over the faults of a running account, for Rust tests and for the control port.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use smol_str::SmolStr;

use super::account_faults::AccountFaults;
use super::port_control::{PortControl, PortUnavailable};
use clock::{Clock, HumanDuration};
use engine::account::Account;
use engine::account::events::EventKind;
use engine::regions::{Region, RegionId, Regions, TopologyError};
use faults::{
    Delay, DownMode, FaultRule, InvalidRule, PortState, RegionCondition, RegionFault, RuleReport, RuleState,
    region_fault_id,
};

/// The faults of a running account. Cheap to clone; clones are the same faults.
#[derive(Clone, Debug)]
pub struct Faults {
    account: Arc<Account>,
    rules: Arc<AccountFaults>,
    ports: Arc<PortControl>,
    clock: Clock,
}

/// Why a fault could not be added or removed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The rule is invalid, or the account cannot apply it.
    #[error(transparent)]
    Rule(#[from] InvalidRule),
    /// There is no such region, or the operation is not possible there.
    #[error(transparent)]
    Region(#[from] TopologyError),
    /// Another process uses the port of a region.
    #[error(transparent)]
    Port(#[from] PortUnavailable),
}

impl Faults {
    pub(crate) fn new(
        account: Arc<Account>,
        rules: Arc<AccountFaults>,
        ports: Arc<PortControl>,
        clock: Clock,
    ) -> Faults {
        Faults { account, rules, ports, clock }
    }

    /// Adds a rule, or replaces the one with its id. Returns the id.
    ///
    /// A rule that refuses connections has closed the port when this returns.
    pub fn add(&self, rule: FaultRule) -> Result<String, FaultError> {
        let id = self.rules.add(rule, self.clock.uptime())?;
        self.rules.events().record(EventKind::FaultAdded, None, format!("the fault '{id}' was added"));
        self.ports.apply_rules()?;
        Ok(id)
    }

    /// Removes a rule. Returns whether there was one.
    pub fn remove(&self, id: &str) -> Result<bool, FaultError> {
        let removed = self.rules.remove(id);
        if removed {
            self.rules.events().record(
                EventKind::FaultRemoved,
                None,
                format!("the fault '{id}' was removed"),
            );
        }
        self.ports.apply_rules()?;
        Ok(removed)
    }

    /// Removes all rules, including the faults of regions. Returns how many were in force.
    pub fn clear(&self) -> Result<usize, FaultError> {
        let removed = self.rules.clear(self.clock.uptime());
        let message = format!("all faults were removed, {removed} of them in force");
        self.rules.events().record(EventKind::FaultRemoved, None, message);
        self.ports.apply_rules()?;
        Ok(removed)
    }

    /// Lists the rules in force in their order, then those that ended, the latest first.
    pub fn list(&self) -> Vec<RuleReport> {
        self.rules.list(self.clock.uptime())
    }

    /// Returns the rule with this id.
    pub fn get(&self, id: &str) -> Option<RuleReport> {
        self.list().into_iter().find(|report| report.rule.id.as_deref() == Some(id))
    }

    /// Connections that were refused, reset or swallowed since the start, by rule and region.
    pub(crate) fn cut_connections(&self) -> BTreeMap<(SmolStr, String), u64> {
        self.rules.cut_connections()
    }

    /// The seed of the random numbers.
    pub fn seed(&self) -> u64 {
        self.rules.seed()
    }

    /// Sets the seed of the random numbers and resets the counts of the rules, so that the same requests get
    /// the same faults again.
    pub fn set_seed(&self, seed: u64) {
        self.rules.set_seed(seed);
    }

    /// How many requests an injected delay holds at this moment.
    pub fn delayed_requests(&self) -> u64 {
        *self.rules.delayed().borrow()
    }

    /// Waits until injected delays hold exactly this many requests.
    pub async fn wait_for_delayed_requests(&self, count: u64) {
        // An error means that the sender is gone, and it lives as long as this handle.
        let _ = self.rules.delayed().wait_for(|delayed| *delayed == count).await;
    }

    /// The control of one region. Spaces and case in the name do not matter.
    pub fn region(&self, name: &str) -> Result<RegionControl, FaultError> {
        let topology = self.topology().current();
        let id = topology.find(name)?;
        let name = topology.region(id).name.clone();
        Ok(RegionControl { faults: self.clone(), name, duration: None })
    }

    /// The health of every region, by region name.
    pub fn regions(&self) -> BTreeMap<String, RegionHealth> {
        let topology = Arc::clone(&self.topology().current());
        let rules = self.list();
        let health = |(id, region): (RegionId, &Region)| {
            let fault_id = region_fault_id(&region.name);
            let is_of_region = |report: &&RuleReport| {
                report.rule.id.as_deref() == Some(&fault_id) && report.state != RuleState::Ended
            };
            let rule = rules.iter().find(is_of_region);
            let (port, problem) = self.ports.state(id);
            let health = RegionHealth {
                condition: rule.map(|report| RegionCondition::of(&report.rule.effect)).unwrap_or_default(),
                ends_in: rule.and_then(|report| report.ends_in),
                listens: port == PortState::Open,
                problem: problem.map(|error| error.to_string()),
            };
            (region.name.clone(), health)
        };
        topology.regions().map(health).collect()
    }

    fn topology(&self) -> &Regions {
        self.rules.regions()
    }
}

/// Injects faults into one region as a whole.
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
    /// The fault of the region as a whole.
    pub condition: RegionCondition,
    /// Time until the fault ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_in: Option<HumanDuration>,
    /// Whether its port is open and responds.
    pub listens: bool,
    /// Why the port is not in the state that the rules ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RegionControl {
    /// Limits the faults that are injected next to this duration.
    pub fn with_duration(mut self, duration: Duration) -> RegionControl {
        self.duration = Some(duration);
        self
    }

    /// The current health of the region.
    pub fn health(&self) -> Option<RegionHealth> {
        self.faults.regions().remove(&self.name)
    }

    /// The region's display name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the region down, in this mode.
    pub fn down(&self, mode: DownMode) -> Result<(), FaultError> {
        self.inject(RegionFault::Down(mode))
    }

    /// Responds 403/1008, as if the account were being removed from the region; it is still listed.
    pub fn drain(&self) -> Result<(), FaultError> {
        self.inject(RegionFault::Drain)
    }

    /// Delays every request to the region.
    pub fn slow(&self, delay: impl Into<Delay>) -> Result<(), FaultError> {
        self.inject(RegionFault::Slow(delay.into()))
    }

    /// Throttles every request with a retry-after of 100 ms.
    pub fn storm(&self) -> Result<(), FaultError> {
        self.inject(RegionFault::Storm { retry_after: None, share: None })
    }

    /// Injects this fault, in place of the region's current one.
    pub fn inject(&self, fault: RegionFault) -> Result<(), FaultError> {
        let Faults { rules, ports, clock, .. } = &self.faults;
        rules.set_region_fault(&self.name, fault, self.duration, clock.uptime())?;
        let (kind, what) = fault_event(fault);
        let duration = self.duration.map(|duration| format!(" for {}", HumanDuration(duration)));
        let message = format!("{what}{}", duration.unwrap_or_default());
        rules.events().record(kind, Some(&self.name), message);
        Ok(ports.apply_rules()?)
    }

    /// Ends the region's fault. Does nothing when it has none.
    pub fn up(&self) -> Result<(), FaultError> {
        let Faults { rules, ports, .. } = &self.faults;
        if rules.remove(&region_fault_id(&self.name)) {
            rules.events().record(EventKind::RegionUp, Some(&self.name), "its fault was ended");
        }
        Ok(ports.apply_rules()?)
    }

    /// Makes this the write region; writes in the previous one get 403/3.
    pub fn fail_over(&self) -> Result<(), FaultError> {
        Ok(self.faults.account.fail_over(&self.name)?)
    }
}

/// The event of a region's fault, and what clients see of it.
fn fault_event(fault: RegionFault) -> (EventKind, &'static str) {
    match fault {
        RegionFault::Down(DownMode::Refused) => {
            (EventKind::RegionDown, "it is down: connections are refused")
        }
        RegionFault::Down(DownMode::BlackHole) => (EventKind::RegionDown, "it is down: it never responds"),
        RegionFault::Down(_) => (EventKind::RegionDown, "it is down: it responds with 503"),
        RegionFault::Drain => (EventKind::RegionDraining, "it responds with 403/1008"),
        RegionFault::Slow(_) => (EventKind::RegionSlow, "its requests are delayed"),
        RegionFault::Storm { .. } => (EventKind::RegionStorm, "its requests are throttled with 429/3200"),
        _ => (EventKind::FaultAdded, "it has a fault"),
    }
}
