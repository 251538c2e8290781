//! The regions of an account and what is agreed between them: immutable, replaced as a whole.

use std::time::Duration;

use protocol::account::ConsistencyLevel;
use thiserror::Error;

use super::{Lag, RegionId};
use crate::disk::DiskError;

/// Regions an account may have.
pub(crate) const REGIONS_MAX: usize = 16;

/// One region of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The display name, `West US`.
    pub name: String,
    /// The port its gateway listens on.
    pub port: u16,
    /// Since when, by uptime, nothing new reaches it.
    pub paused_at: Option<Duration>,
}

impl Region {
    /// A region behind `port`.
    pub fn new(name: impl Into<String>, port: u16) -> Region {
        Region { name: name.into(), port, paused_at: None }
    }
}

/// How stale a bounded read may be: whichever is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStaleness {
    /// Writes behind.
    pub versions: u64,
    /// Time behind.
    pub interval: Duration,
}

impl Default for MaxStaleness {
    /// The least that the service accepts for an account in several regions.
    fn default() -> MaxStaleness {
        MaxStaleness { versions: 100_000, interval: Duration::from_secs(300) }
    }
}

/// How things are between the regions.
#[derive(Clone, Debug)]
pub struct Topology {
    /// By [`RegionId`].
    regions: Vec<Region>,
    /// In failover order: the first one writes. A region that was removed is not among them.
    order: Vec<RegionId>,
    /// While a failover is announced or under way: the other region that is listed as writable.
    also_writable: Option<RegionId>,
    multi_write: bool,
    /// Whether the writes of a single partition may move to another region.
    partition_failover: bool,
    /// How often the writes of the account have moved, and with them all partitions.
    moves: u64,
    /// What a read may miss unless it asks for less.
    pub consistency: ConsistencyLevel,
    pub(crate) staleness: MaxStaleness,
    /// From each region (rows) to each region (columns).
    lags: Vec<Lag>,
    /// What they all were at first.
    lag_at_start: Lag,
}

/// What cannot be a topology.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TopologyError {
    /// No region, or too many.
    #[error("an account has 1 to {REGIONS_MAX} regions, not {0}")]
    Count(usize),
    /// A region without a name.
    #[error("a region needs a name, such as 'West US'")]
    EmptyName,
    /// Two regions that clients could not tell apart.
    #[error("the region '{0}' is named twice; names are compared without spaces and case")]
    DuplicateName(String),
    /// A region nobody knows.
    #[error("there is no region '{name}'; the regions are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Strong reads need one order of writes.
    #[error(
        "an account that writes in several regions cannot be strongly consistent; use bounded-staleness or less"
    )]
    StrongMultiWrite,
    /// There is nothing to fail over to.
    #[error(
        "every region of this account writes, so there is nothing to fail over; use `peri region down` instead"
    )]
    NothingToFailOver,
    /// The region that writes cannot be taken away.
    #[error("'{0}' is the region that writes; fail over to another one first")]
    IsWriteRegion(String),
    /// A region that was removed.
    #[error("'{0}' was removed from the account; add it again first")]
    Removed(String),
    /// An order that leaves a region out, or names one twice.
    #[error("an order names every region of the account once: {0}")]
    InvalidOrder(String),
    /// Partitions stay with their account.
    #[error(
        "the partitions of this account do not fail over by themselves; start it with `peri up --partition-failover`"
    )]
    NoPartitionFailover,
    /// It could not be written down, and was not done.
    #[error("{0}")]
    NotPersisted(String),
}

impl From<DiskError> for TopologyError {
    fn from(error: DiskError) -> TopologyError {
        TopologyError::NotPersisted(error.to_string())
    }
}

impl Topology {
    /// `regions` in failover order, all as far apart as `lag` says.
    pub fn new(
        regions: Vec<Region>,
        multi_write: bool,
        consistency: ConsistencyLevel,
        lag: Lag,
    ) -> Result<Topology, TopologyError> {
        if regions.is_empty() || regions.len() > REGIONS_MAX {
            return Err(TopologyError::Count(regions.len()));
        }
        for (at, region) in regions.iter().enumerate() {
            if normal(&region.name).is_empty() {
                return Err(TopologyError::EmptyName);
            }
            if regions[..at].iter().any(|other| normal(&other.name) == normal(&region.name)) {
                return Err(TopologyError::DuplicateName(region.name.clone()));
            }
        }
        // One region writes like any other account, whatever was asked for.
        let multi_write = multi_write && regions.len() > 1;
        if multi_write && consistency == ConsistencyLevel::Strong {
            return Err(TopologyError::StrongMultiWrite);
        }
        let order = ids(regions.len()).collect();
        let lags = vec![lag; regions.len() * regions.len()];
        let staleness = MaxStaleness::default();
        let (also_writable, lag_at_start) = (None, lag);
        Ok(Topology {
            regions,
            order,
            also_writable,
            multi_write,
            partition_failover: false,
            moves: 0,
            consistency,
            staleness,
            lags,
            lag_at_start,
        })
    }

    /// The same, where the writes of a single partition may move to another region, or may not. Where every
    /// region writes there is nothing to move.
    #[must_use]
    pub fn with_partition_failover(mut self, allowed: bool) -> Topology {
        self.partition_failover = allowed && !self.multi_write;
        self
    }

    /// Whether the writes of a single partition may move to another region.
    pub fn has_partition_failover(&self) -> bool {
        self.partition_failover
    }

    /// How often the writes of the account have moved.
    pub(crate) fn failover_count(&self) -> u64 {
        self.moves
    }

    /// Notes how often that is by now.
    pub(crate) fn set_failover_count(&mut self, moves: u64) {
        self.moves = moves;
    }

    /// The region by this name, if it can write a single partition while the account is written elsewhere.
    pub(crate) fn partition_write_region(&self, name: &str) -> Option<RegionId> {
        let region = self.find(name).ok().filter(|_| self.partition_failover)?;
        (self.is_listed(region) && region != self.hub()).then_some(region)
    }

    /// How many regions there are.
    pub fn len(&self) -> usize {
        self.regions.len()
    }

    /// Every region with its number, in the order in which they were named.
    pub fn regions(&self) -> impl Iterator<Item = (RegionId, &Region)> {
        ids(self.regions.len()).zip(&self.regions)
    }

    /// One of them.
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    /// The one with this name, however it is spaced and capitalised.
    pub fn find(&self, name: &str) -> Result<RegionId, TopologyError> {
        let found = self.regions().find(|(_, region)| normal(&region.name) == normal(name));
        found.map(|(id, _)| id).ok_or_else(|| {
            let all: Vec<RegionId> = ids(self.regions.len()).collect();
            TopologyError::Unknown { name: name.to_owned(), known: self.names(&all) }
        })
    }

    fn names(&self, ids: &[RegionId]) -> String {
        let names: Vec<String> = ids.iter().map(|id| format!("'{}'", self.region(*id).name)).collect();
        names.join(", ")
    }

    /// In failover order, the hub first.
    pub fn failover_order(&self) -> &[RegionId] {
        &self.order
    }

    /// The region that keeps the account: the only one that writes, or the first among those.
    pub fn hub(&self) -> RegionId {
        self.order[0]
    }

    /// Whether every region writes.
    pub fn is_multi_write(&self) -> bool {
        self.multi_write
    }

    /// Whether items can be written there.
    pub fn takes_item_writes(&self, region: RegionId) -> bool {
        self.multi_write || region == self.hub()
    }

    /// How long commits take from one region to another.
    pub fn lag(&self, from: RegionId, to: RegionId) -> Lag {
        self.lags[from.index() * self.regions.len() + to.index()]
    }

    /// How long they took between all regions at first.
    pub(crate) fn lag_at_start(&self) -> Lag {
        self.lag_at_start
    }

    /// Sets how long they take.
    pub(crate) fn set_lag(&mut self, from: RegionId, to: RegionId, lag: Lag) {
        let regions = self.regions.len();
        self.lags[from.index() * regions + to.index()] = lag;
    }

    /// Whether it is one of the account's regions, and was not removed.
    pub fn is_listed(&self, region: RegionId) -> bool {
        self.order.contains(&region)
    }

    /// The other region that is listed as writable, while a failover is announced or under way.
    pub fn also_writable(&self) -> Option<RegionId> {
        self.also_writable
    }

    /// Makes `region` the one that writes; the others keep their order.
    pub(crate) fn fail_over(&mut self, region: RegionId) -> Result<(), TopologyError> {
        self.check_failover(region)?;
        self.order.retain(|other| *other != region);
        self.order.insert(0, region);
        self.also_writable = None;
        Ok(())
    }

    /// Lists `region` as writable beside the one that writes, which goes on to.
    pub(crate) fn announce_failover(&mut self, region: RegionId) -> Result<(), TopologyError> {
        self.check_failover(region)?;
        self.also_writable = Some(region).filter(|region| *region != self.hub());
        Ok(())
    }

    /// Makes `region` the one that writes, and still lists the one before as writable.
    pub(crate) fn begin_failover(&mut self, region: RegionId) -> Result<(), TopologyError> {
        let before = self.hub();
        self.fail_over(region)?;
        self.also_writable = Some(before).filter(|before| *before != region);
        Ok(())
    }

    /// Lists no region as writable that is not.
    pub(crate) fn complete_failover(&mut self) {
        self.also_writable = None;
    }

    /// Sets the failover order; another first region is a failover.
    pub(crate) fn set_failover_order(&mut self, order: Vec<RegionId>) -> Result<(), TopologyError> {
        let mut sorted = [order.clone(), self.order.clone()];
        sorted.iter_mut().for_each(|order| order.sort_unstable());
        if sorted[0] != sorted[1] {
            return Err(TopologyError::InvalidOrder(self.names(&self.order)));
        }
        if order[0] != self.hub() {
            self.fail_over(order[0])?;
        }
        self.order = order;
        Ok(())
    }

    /// Lists `region` no longer.
    pub(crate) fn remove(&mut self, region: RegionId) -> Result<(), TopologyError> {
        if region == self.hub() {
            return Err(TopologyError::IsWriteRegion(self.region(region).name.clone()));
        }
        self.order.retain(|other| *other != region);
        self.also_writable = self.also_writable.filter(|other| *other != region);
        Ok(())
    }

    /// Lists `region` again, as the last one.
    pub(crate) fn add(&mut self, region: RegionId) {
        if !self.is_listed(region) {
            self.order.push(region);
        }
    }

    fn check_failover(&self, region: RegionId) -> Result<(), TopologyError> {
        if self.multi_write {
            return Err(TopologyError::NothingToFailOver);
        }
        if !self.is_listed(region) {
            return Err(TopologyError::Removed(self.region(region).name.clone()));
        }
        Ok(())
    }

    /// Stops or resumes what reaches `region`.
    pub(crate) fn set_paused(&mut self, region: RegionId, since: Option<Duration>) {
        self.regions[region.index()].paused_at = since;
    }
}

fn ids(count: usize) -> impl Iterator<Item = RegionId> {
    // Bounded by `REGIONS_MAX`.
    (0..count as u8).map(RegionId)
}

/// How SDKs compare region names.
fn normal(name: &str) -> String {
    name.chars().filter(|character| !character.is_whitespace()).flat_map(char::to_lowercase).collect()
}
