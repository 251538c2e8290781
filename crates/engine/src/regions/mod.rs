//! Where the account is, who may write, and how far apart its regions are.
//!
//! In: changes of the topology, one at a time. Out: immutable [`Topology`]s, and from one of them
//! the vantage of a request: which copy it may see. What the copies hold is the `store`'s.

mod conflict;
mod kept;
mod lag;
#[cfg(test)]
mod tests;
mod topology;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use protocol::account::ConsistencyLevel;

use crate::disk::{Batch, CatalogKey, Disk, DiskError, Space};
pub(crate) use conflict::{Meeting, Settlement, Verdict};
pub use lag::{InvalidLag, Lag};
pub(crate) use topology::REGIONS_MAX;
pub use topology::{MaxStaleness, Region, Topology, TopologyError};

/// Which region, in the order in which they were named. Never changes while the account exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u8);

impl RegionId {
    /// As an index into lists with one entry per region.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// What a request may see.
#[derive(Clone, Copy, Debug)]
pub struct ReadContext {
    /// The region that answers.
    pub region: RegionId,
    /// How far back its copies may be.
    pub(crate) staleness: StalenessBound,
    /// When it is, by the clock that never goes back.
    pub uptime: Duration,
    /// Whether a session token, if the request has one, must be satisfied.
    pub enforces_session_token: bool,
}

#[cfg(test)]
impl ReadContext {
    /// The newest, from the first region.
    pub(crate) const NEWEST: ReadContext = ReadContext {
        region: RegionId(0),
        staleness: StalenessBound::Newest,
        uptime: Duration::ZERO,
        enforces_session_token: true,
    };
}

/// How far back a copy may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StalenessBound {
    /// Not at all: it writes, or reads are strong.
    Newest,
    /// As far as replication has come at this uptime.
    Replicated(Duration),
    /// The same, but no further back than agreed.
    Bounded(Duration, MaxStaleness),
}

/// The topology, as it is now.
#[derive(Debug)]
pub struct Regions {
    current: ArcSwap<Topology>,
    writer: Mutex<()>,
    /// Where changes are kept, if anywhere.
    disk: OnceLock<Arc<Disk>>,
}

impl Regions {
    /// Begins with `topology`.
    pub fn new(topology: Topology) -> Regions {
        Regions { current: ArcSwap::from_pointee(topology), writer: Mutex::new(()), disk: OnceLock::new() }
    }

    /// Keeps it on `disk` from now on, as it is now and whatever becomes of it.
    pub(crate) fn keep_on(&self, disk: &Arc<Disk>) -> Result<(), DiskError> {
        let _turn = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        keep(disk, &self.current.load())?;
        // Once: an account has one directory.
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

    /// How things are. Never waits.
    pub fn current(&self) -> Guard<Arc<Topology>> {
        self.current.load()
    }

    /// Puts what `change` makes of the topology in its place; two changes never lose one.
    pub(crate) fn update<T, E: From<DiskError>>(
        &self,
        change: impl FnOnce(&mut Topology) -> Result<T, E>,
    ) -> Result<T, E> {
        let _turn = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Topology::clone(&self.current.load());
        let outcome = change(&mut next)?;
        if let Some(disk) = self.disk.get() {
            keep(disk, &next)?;
        }
        self.current.store(Arc::new(next));
        Ok(outcome)
    }
}

/// Writes a topology down.
fn keep(disk: &Disk, topology: &Topology) -> Result<(), DiskError> {
    let mut batch = Batch::new(512);
    let kept = serde_json::to_vec(&topology.kept()).expect("names and lags are text");
    batch.put(Space::Catalog, &CatalogKey::Regions.to_bytes(), |to| to.extend_from_slice(&kept));
    disk.append(batch)
}

impl Topology {
    /// What a request at this level sees from `region`.
    pub fn read_context(&self, region: RegionId, level: ConsistencyLevel, uptime: Duration) -> ReadContext {
        // For a region that nothing reaches, time stands still.
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
