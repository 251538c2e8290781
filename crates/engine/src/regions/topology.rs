//! The topology of an account: its regions, their order, lags and consistency. Immutable, replaced as a
//! whole.

use std::time::Duration;

use protocol::account::ConsistencyLevel;
use thiserror::Error;

use super::{Lag, RegionId};
use crate::disk::DiskError;

/// The number of regions that an account may have.
pub(crate) const REGIONS_MAX: usize = 16;

/// One region of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The display name, `West US`.
    pub name: String,
    /// The port its gateway listens on.
    pub port: u16,
    /// The uptime at which replication to it was paused, if it is.
    pub paused_at: Option<Duration>,
}

impl Region {
    /// A region behind `port`.
    pub fn new(name: impl Into<String>, port: u16) -> Region {
        Region { name: name.into(), port, paused_at: None }
    }
}

/// The limits of bounded staleness: whichever is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxStaleness {
    /// How many versions a read may be behind.
    pub versions: u64,
    /// How much time a read may be behind.
    pub interval: Duration,
}

impl Default for MaxStaleness {
    /// The least that the service accepts for an account in several regions.
    fn default() -> MaxStaleness {
        MaxStaleness { versions: 100_000, interval: Duration::from_secs(300) }
    }
}

/// The regions of an account and what is configured between them.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The regions, by [`RegionId`].
    regions: Vec<Region>,
    /// The failover order: the first region writes. A region that was removed is not in it.
    order: Vec<RegionId>,
    /// While a failover is announced or under way: the other region that is listed as writable.
    also_writable: Option<RegionId>,
    multi_write: bool,
    /// Whether every region should write if there are several.
    multi_write_requested: bool,
    /// Whether the writes of a single partition may move to another region.
    partition_failover: bool,
    /// How often the account's writes have moved, and with them those of all partitions.
    failover_count: u64,
    /// The account's default consistency level.
    pub consistency: ConsistencyLevel,
    pub(crate) staleness: MaxStaleness,
    /// From each region (rows) to each region (columns).
    lags: Vec<Lag>,
    /// The lag that the account was started with.
    lag_at_start: Lag,
}

/// Why a topology cannot be made or changed.
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
    /// No region has this name.
    #[error("there is no region '{name}'; the regions are {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// The names of the account's regions.
        known: String,
    },
    /// Strong reads need one order of writes.
    #[error(
        "an account that writes in several regions cannot be strongly consistent; use bounded-staleness or less"
    )]
    StrongMultiWrite,
    /// Every region writes, so there is nothing to fail over.
    #[error(
        "every region of this account writes, so there is nothing to fail over; use `peri region down` instead"
    )]
    NothingToFailOver,
    /// The write region cannot be removed.
    #[error("'{0}' is the region that writes; fail over to another one first")]
    IsWriteRegion(String),
    /// A region that was removed.
    #[error("'{0}' was removed from the account; add it again first")]
    Removed(String),
    /// An order that leaves a region out, or names one twice.
    #[error("an order names every region of the account once: {0}")]
    InvalidOrder(String),
    /// A further write region gets everything that is in flight, which a paused region does not take.
    #[error("replication to '{0}' is paused, and a further write region needs all of it; resume it first")]
    ReplicationPaused(String),
    /// Partition failover is not enabled.
    #[error(
        "the partitions of this account do not fail over by themselves; start it with `peri up --partition-failover`"
    )]
    NoPartitionFailover,
    /// The change could not be persisted, and was not made.
    #[error("{0}")]
    NotPersisted(String),
}

impl From<DiskError> for TopologyError {
    fn from(error: DiskError) -> TopologyError {
        TopologyError::NotPersisted(error.to_string())
    }
}

impl Topology {
    /// The topology of `regions`, in failover order, with the same lag between all of them.
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
            check_name(&region.name, &regions[..at])?;
        }
        // With one region there is nothing to write concurrently, whatever was asked for.
        let multi_write_requested = multi_write;
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
            multi_write_requested,
            partition_failover: false,
            failover_count: 0,
            consistency,
            staleness,
            lags,
            lag_at_start,
        })
    }

    /// The topology with the regions of these names in place of its own, and their lags as at the start.
    pub(crate) fn with_regions(&self, names: &[String]) -> Result<Topology, TopologyError> {
        let regions = names.iter().map(|name| Region::new(name, 0)).collect();
        let topology =
            Topology::new(regions, self.multi_write_requested, self.consistency, self.lag_at_start)?;
        Ok(topology.with_partition_failover(self.partition_failover))
    }

    /// Enables or disables partition failover: whether the writes of a single partition may move to another
    /// region. Where every region writes there is nothing to move.
    #[must_use]
    pub fn with_partition_failover(mut self, allowed: bool) -> Topology {
        self.partition_failover = allowed && !self.multi_write;
        self
    }

    /// Whether the writes of a single partition may move to another region.
    pub fn has_partition_failover(&self) -> bool {
        self.partition_failover
    }

    /// How often the account's writes have moved to another region.
    pub(crate) fn failover_count(&self) -> u64 {
        self.failover_count
    }

    /// Sets how often the account's writes have moved to another region.
    pub(crate) fn set_failover_count(&mut self, failover_count: u64) {
        self.failover_count = failover_count;
    }

    /// The region of this name, if it can be the write region of a single partition.
    pub(crate) fn partition_write_region(&self, name: &str) -> Option<RegionId> {
        let region = self.find(name).ok().filter(|_| self.partition_failover)?;
        (self.is_listed(region) && region != self.hub()).then_some(region)
    }

    /// How many regions there are.
    pub fn region_count(&self) -> usize {
        self.regions.len()
    }

    /// Every region with its number, in the order in which they were named.
    pub fn regions(&self) -> impl Iterator<Item = (RegionId, &Region)> {
        ids(self.regions.len()).zip(&self.regions)
    }

    /// The region with this number.
    pub fn region(&self, id: RegionId) -> &Region {
        &self.regions[id.index()]
    }

    /// The number of the region with this name. Spaces and case are ignored.
    pub fn find(&self, name: &str) -> Result<RegionId, TopologyError> {
        let found = self.regions().find(|(_, region)| normalized(&region.name) == normalized(name));
        found.map(|(id, _)| id).ok_or_else(|| {
            let all: Vec<RegionId> = ids(self.regions.len()).collect();
            TopologyError::Unknown { name: name.to_owned(), known: self.names(&all) }
        })
    }

    fn names(&self, ids: &[RegionId]) -> String {
        let names: Vec<String> = ids.iter().map(|id| format!("'{}'", self.region(*id).name)).collect();
        names.join(", ")
    }

    /// The failover order, the hub first.
    pub fn failover_order(&self) -> &[RegionId] {
        &self.order
    }

    /// The hub: the only write region, or the first of them in failover order.
    pub fn hub(&self) -> RegionId {
        self.order[0]
    }

    /// Whether every region writes.
    pub fn is_multi_write(&self) -> bool {
        self.multi_write
    }

    /// Whether every region should write if there are several.
    pub(crate) fn multi_write_requested(&self) -> bool {
        self.multi_write_requested
    }

    /// Whether items can be written in this region.
    pub fn takes_item_writes(&self, region: RegionId) -> bool {
        self.multi_write || region == self.hub()
    }

    /// How long commits take from one region to another.
    pub fn lag(&self, from: RegionId, to: RegionId) -> Lag {
        self.lags[from.index() * self.regions.len() + to.index()]
    }

    /// The lag that the account was started with.
    pub(crate) fn lag_at_start(&self) -> Lag {
        self.lag_at_start
    }

    /// Sets the replication lag from one region to another.
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

    /// Makes `region` the write region; the others keep their order.
    pub(crate) fn fail_over(&mut self, region: RegionId) -> Result<(), TopologyError> {
        self.check_failover(region)?;
        self.order.retain(|other| *other != region);
        self.order.insert(0, region);
        self.also_writable = None;
        Ok(())
    }

    /// Lists `region` as writable beside the write region, which continues writing.
    pub(crate) fn announce_failover(&mut self, region: RegionId) -> Result<(), TopologyError> {
        self.check_failover(region)?;
        self.also_writable = Some(region).filter(|region| *region != self.hub());
        Ok(())
    }

    /// Makes `region` the write region, and still lists the former one as writable.
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

    /// Removes `region` from the list.
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

    /// Adds a new region, the last in failover order, with the lag that the account was started with.
    pub(crate) fn extend(&mut self, region: Region) -> Result<RegionId, TopologyError> {
        let paused = self.regions.iter().find(|region| region.paused_at.is_some());
        if let Some(paused) = paused.filter(|_| self.multi_write) {
            return Err(TopologyError::ReplicationPaused(paused.name.clone()));
        }
        if self.multi_write_requested && self.consistency == ConsistencyLevel::Strong {
            return Err(TopologyError::StrongMultiWrite);
        }
        let before = self.regions.len();
        if before >= REGIONS_MAX {
            return Err(TopologyError::Count(before + 1));
        }
        check_name(&region.name, &self.regions)?;
        self.regions.push(region);
        let lag = |from: RegionId, to: RegionId| match from.index().max(to.index()) < before {
            true => self.lags[from.index() * before + to.index()],
            false => self.lag_at_start,
        };
        self.lags = ids(before + 1).flat_map(|from| ids(before + 1).map(move |to| lag(from, to))).collect();
        let id = RegionId(before as u8);
        self.order.push(id);
        self.multi_write = self.multi_write_requested;
        Ok(id)
    }

    /// Sets the port that a region's gateway listens on.
    pub(crate) fn set_port(&mut self, region: RegionId, port: u16) {
        self.regions[region.index()].port = port;
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

    /// Pauses or resumes replication to `region`.
    pub(crate) fn set_paused(&mut self, region: RegionId, since: Option<Duration>) {
        self.regions[region.index()].paused_at = since;
    }
}

fn ids(count: usize) -> impl Iterator<Item = RegionId> {
    // Bounded by `REGIONS_MAX`.
    (0..count as u8).map(RegionId)
}

/// Fails if a region has no name, or that of another one.
fn check_name(name: &str, others: &[Region]) -> Result<(), TopologyError> {
    if normalized(name).is_empty() {
        return Err(TopologyError::EmptyName);
    }
    match others.iter().any(|other| normalized(&other.name) == normalized(name)) {
        true => Err(TopologyError::DuplicateName(name.to_owned())),
        false => Ok(()),
    }
}

/// How SDKs compare region names.
pub(super) fn normalized(name: &str) -> String {
    name.chars().filter(|character| !character.is_whitespace()).flat_map(char::to_lowercase).collect()
}
