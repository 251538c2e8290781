//! The regions of the account: which of them write, and how far apart they are.
//!
//! In: changes of the topology, one at a time. Out: immutable [`Topology`]s, and the read context of a
//! request: how stale the replica it reads may be. What the replicas hold is the business of `store`.

mod conflict;
mod lag;
mod per_region;
mod stored;
#[cfg(test)]
mod tests;
mod topology;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use protocol::account::ConsistencyLevel;

pub use crate::disk::RegionSource;
use crate::disk::{Batch, CatalogKey, Disk, DiskError, Keyspace};
pub(crate) use conflict::{ConflictDecision, ConflictResolver, ConflictingVersions};
pub use lag::{InvalidLag, Lag};
pub(crate) use per_region::PerRegion;
pub(crate) use topology::REGIONS_MAX;
pub use topology::{MaxStaleness, Region, Topology, TopologyError};

/// The number of a region, in the order in which they were named. Never changes while the account exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u8);

impl RegionId {
    /// As an index into lists with one entry per region.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// What a read may see: in which region, when, and how stale.
#[derive(Clone, Copy, Debug)]
pub struct ReadContext {
    /// The region that serves the read.
    pub region: RegionId,
    /// How stale the region's replicas may be.
    pub(crate) staleness: StalenessBound,
    /// The time of the read by the clock that never goes back.
    pub uptime: Duration,
    /// Whether a session token, if the request has one, must be satisfied.
    pub enforces_session_token: bool,
}

#[cfg(test)]
impl ReadContext {
    /// A read of the newest version in the first region.
    pub(crate) const NEWEST: ReadContext = ReadContext {
        region: RegionId(0),
        staleness: StalenessBound::Newest,
        uptime: Duration::ZERO,
        enforces_session_token: true,
    };
}

/// How stale a replica may be that a read uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StalenessBound {
    /// Not at all: the region writes, or the read is strongly consistent.
    Newest,
    /// As stale as replication is at this uptime.
    Replicated(Duration),
    /// As stale as replication is at this uptime, within the limits of bounded staleness.
    Bounded(Duration, MaxStaleness),
}

/// The current topology, and the lock for changing it.
#[derive(Debug)]
pub struct Regions {
    current: ArcSwap<Topology>,
    writer: Mutex<()>,
    /// The data directory, if the account has one.
    disk: OnceLock<Arc<Disk>>,
}

impl Regions {
    /// Regions that begin with this topology.
    pub fn new(topology: Topology) -> Regions {
        Regions { current: ArcSwap::from_pointee(topology), writer: Mutex::new(()), disk: OnceLock::new() }
    }

    /// Persists the topology to `disk`, now and after every change.
    pub(crate) fn persist_to(&self, disk: &Arc<Disk>) -> Result<(), DiskError> {
        let _guard = self.writer.lock();
        persist(disk, &self.current.load())?;
        // Fails only if it was set before, and an account is opened once.
        let _ = self.disk.set(Arc::clone(disk));
        Ok(())
    }

    /// One region, for tests about something else.
    #[cfg(test)]
    pub(crate) fn single_region() -> Arc<Regions> {
        let region = vec![Region::new("West US", 0)];
        let topology = Topology::new(region, false, ConsistencyLevel::Session, Lag::NONE);
        Arc::new(Regions::new(topology.expect("one region is a topology")))
    }

    /// The current topology. Never waits.
    pub fn current(&self) -> Guard<Arc<Topology>> {
        self.current.load()
    }

    /// Replaces the topology by what `change` makes of it. Changes are serialized, so none is lost.
    pub(crate) fn update<T, E: From<DiskError>>(
        &self,
        change: impl FnOnce(&mut Topology) -> Result<T, E>,
    ) -> Result<T, E> {
        let _guard = self.writer.lock();
        let mut next = Topology::clone(&self.current.load());
        let outcome = change(&mut next)?;
        if let Some(disk) = self.disk.get() {
            persist(disk, &next)?;
        }
        self.current.store(Arc::new(next));
        Ok(outcome)
    }

    /// Replaces the topology by `next`, together with what depends on it: `together` gets the batch that persists
    /// the topology, persists it with its own changes, and calls what it is given to publish the topology.
    /// `change` makes `next` and returns whether something depends on it.
    pub(crate) fn update_together<T, E: From<DiskError>>(
        &self,
        change: impl FnOnce(&mut Topology) -> Result<(T, bool), E>,
        together: impl FnOnce(&Topology, Batch, &dyn Fn()) -> Result<(), E>,
    ) -> Result<T, E> {
        let _guard = self.writer.lock();
        let mut next = Topology::clone(&self.current.load());
        let (outcome, has_dependents) = change(&mut next)?;
        let next = Arc::new(next);
        let publish = || self.current.store(Arc::clone(&next));
        if has_dependents {
            together(&next, batch_of(&next), &publish)?;
        } else {
            if let Some(disk) = self.disk.get() {
                persist(disk, &next)?;
            }
            publish();
        }
        Ok(outcome)
    }
}

/// Appends a topology to the journal.
fn persist(disk: &Disk, topology: &Topology) -> Result<(), DiskError> {
    disk.append(batch_of(topology))
}

fn batch_of(topology: &Topology) -> Batch {
    let mut batch = Batch::new(512);
    let stored = serde_json::to_vec(&topology.stored()).expect("names and lags are text");
    batch.put(Keyspace::Catalog, &CatalogKey::Regions.to_bytes(), |to| to.extend_from_slice(&stored));
    batch
}

impl Topology {
    /// The read context of a request at this consistency level in `region`.
    pub fn read_context(&self, region: RegionId, level: ConsistencyLevel, uptime: Duration) -> ReadContext {
        // While replication to a region is paused, time stands still for its reads.
        let seen_until = self.region(region).paused_at.map_or(uptime, |paused| paused.min(uptime));
        let sees = if self.takes_item_writes(region) || level == ConsistencyLevel::Strong {
            StalenessBound::Newest
        } else if level == ConsistencyLevel::BoundedStaleness {
            StalenessBound::Bounded(seen_until, self.staleness)
        } else {
            StalenessBound::Replicated(seen_until)
        };
        ReadContext {
            region,
            staleness: sees,
            uptime,
            enforces_session_token: level >= ConsistencyLevel::Session,
        }
    }
}
