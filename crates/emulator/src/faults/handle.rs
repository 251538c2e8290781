//! The faults of a running account, for those who make them: tests in Rust, and the control port.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::doors::{Doors, PortTaken};
use super::rule::{BadRule, Rule};
use super::set::{FaultSet, Report, RuleState};
use super::switch::{Condition, Down, Trouble, id_of};
use super::{Delay, Doorway};
use crate::hosted::HostedAccount;
use clock::{Clock, Span};
use engine::account::Account;
use engine::regions::{Region, RegionId, Regions, TopologyError};

/// The faults of a running account. Cheap to clone; clones are the same faults.
#[derive(Clone, Debug)]
pub struct Faults {
    account: Arc<Account>,
    set: Arc<FaultSet>,
    doors: Arc<Doors>,
    clock: Clock,
}

/// Why a fault was not made, or not ended.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// The rule is impossible.
    #[error(transparent)]
    Rule(#[from] BadRule),
    /// There is no such region, or it cannot do that.
    #[error(transparent)]
    Region(#[from] TopologyError),
    /// A region's port is held by someone else.
    #[error(transparent)]
    Port(#[from] PortTaken),
}

impl Faults {
    pub(crate) fn new(hosted: &HostedAccount, doors: Arc<Doors>, clock: Clock) -> Faults {
        let HostedAccount { account, faults: set, .. } = hosted.clone();
        Faults { account, set, doors, clock }
    }

    /// The faults of an account that is asked without sockets. Rules about ports have nothing to close.
    pub fn without_ports(hosted: &HostedAccount, clock: &Clock) -> Faults {
        let doors = Doors::new(Arc::clone(&hosted.faults), clock.clone(), Vec::new());
        Faults::new(hosted, Arc::new(doors), clock.clone())
    }

    /// Adds a rule, or replaces the one with the same id in its place. Returns the id.
    ///
    /// A rule that refuses connections has closed the port when this returns.
    pub fn add(&self, rule: Rule) -> Result<String, FaultError> {
        let id = self.set.add(rule, self.clock.uptime())?;
        self.doors.settle()?;
        Ok(id)
    }

    /// Removes a rule. Whether there was one.
    pub fn remove(&self, id: &str) -> Result<bool, FaultError> {
        let removed = self.set.remove(id);
        self.doors.settle()?;
        Ok(removed)
    }

    /// Removes everything, the troubles of regions too. Returns how many rules were in force.
    pub fn clear(&self) -> Result<usize, FaultError> {
        let removed = self.set.clear(self.clock.uptime());
        self.doors.settle()?;
        Ok(removed)
    }

    /// Every rule in its order, then those that ended, the last one first.
    pub fn list(&self) -> Vec<Report> {
        self.set.list(self.clock.uptime())
    }

    /// One rule.
    pub fn get(&self, id: &str) -> Option<Report> {
        self.list().into_iter().find(|report| report.rule.id.as_deref() == Some(id))
    }

    /// Where chance starts from.
    pub fn seed(&self) -> u64 {
        self.set.seed()
    }

    /// Starts chance anew: the rules count from zero, so the same requests meet the same faults.
    pub fn set_seed(&self, seed: u64) {
        self.set.set_seed(seed);
    }

    /// How many requests a delay holds up at this moment.
    pub fn held(&self) -> u64 {
        *self.set.held().borrow()
    }

    /// Waits until delays hold up exactly this many requests.
    pub async fn until_held(&self, count: u64) {
        // The sender lives as long as this handle.
        let _ = self.set.held().wait_for(|held| *held == count).await;
    }

    /// A region, however its name is spaced and capitalised.
    pub fn region(&self, name: &str) -> Result<RegionSwitch, FaultError> {
        let topology = self.topology().current();
        let id = topology.find(name)?;
        let name = topology.region(id).name.clone();
        Ok(RegionSwitch { faults: self.clone(), name, lasting: None })
    }

    /// How every region is, by its name.
    pub fn regions(&self) -> BTreeMap<String, RegionHealth> {
        let topology = Arc::clone(&self.topology().current());
        let rules = self.list();
        let health = |(id, region): (RegionId, &Region)| {
            let switch = id_of(&region.name);
            let is_its = |report: &&Report| {
                report.rule.id.as_deref() == Some(&switch) && report.state != RuleState::Ended
            };
            let rule = rules.iter().find(is_its);
            let (door, problem) = self.doors.state(id);
            let health = RegionHealth {
                condition: rule.map(|report| Condition::of(&report.rule.effect)).unwrap_or_default(),
                ends_in: rule.and_then(|report| report.ends_in),
                listens: door == Doorway::Open,
                problem: problem.map(|problem| problem.to_string()),
            };
            (region.name.clone(), health)
        };
        topology.regions().map(health).collect()
    }

    fn topology(&self) -> &Regions {
        self.set.regions()
    }
}

/// One region, to be switched.
#[derive(Clone, Debug)]
pub struct RegionSwitch {
    faults: Faults,
    name: String,
    lasting: Option<Duration>,
}

/// How a region is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RegionHealth {
    /// What is wrong with it as a whole.
    pub condition: Condition,
    /// Time until that ends by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_in: Option<Span>,
    /// Whether its port is open and answers.
    pub listens: bool,
    /// Why it is not as it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl RegionSwitch {
    /// The same region; what is done to it next ends by itself after this time.
    pub fn lasting(mut self, duration: Duration) -> RegionSwitch {
        self.lasting = Some(duration);
        self
    }

    /// How it is.
    pub fn health(&self) -> Option<RegionHealth> {
        self.faults.regions().remove(&self.name)
    }

    /// The region's display name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the region down.
    pub fn down(&self, how: Down) -> Result<(), FaultError> {
        self.suffer(Trouble::Down(how))
    }

    /// Answers 403/1008, as if the account were being removed from the region; it is still listed.
    pub fn drain(&self) -> Result<(), FaultError> {
        self.suffer(Trouble::Drain)
    }

    /// Makes every request wait.
    pub fn slow(&self, delay: impl Into<Delay>) -> Result<(), FaultError> {
        self.suffer(Trouble::Slow(delay.into()))
    }

    /// Throttles every request, telling clients to come back after 100 ms.
    pub fn storm(&self) -> Result<(), FaultError> {
        self.suffer(Trouble::Storm { retry_after: None, share: None })
    }

    /// Gives the region this trouble, in place of the one it has.
    pub fn suffer(&self, trouble: Trouble) -> Result<(), FaultError> {
        let Faults { set, doors, clock, .. } = &self.faults;
        let rule = trouble.rule(&self.name, self.lasting);
        rule.check(&set.regions().current())?;
        set.put(rule.named(&id_of(&self.name)), clock.uptime())?;
        Ok(doors.settle()?)
    }

    /// Ends the region's trouble. Does nothing when it has none.
    pub fn up(&self) -> Result<(), FaultError> {
        self.faults.remove(&id_of(&self.name)).map(|_| ())
    }

    /// Makes this the region that writes; writes at the one before are answered 403/3.
    pub fn fail_over(&self) -> Result<(), FaultError> {
        Ok(self.faults.account.fail_over(&self.name)?)
    }
}
