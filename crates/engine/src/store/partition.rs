//! A physical partition: a range of the ring, with its items as every region sees them.
//!
//! In an account that writes in one region there is one line of states, and each other region has a
//! view of it; where all write, each has a line. Which state a request gets is decided by its
//! [`ReadContext`]. What is done to a partition besides reading and writing is in `upkeep`.

mod upkeep;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::Guard;
use bytes::Bytes;
use protocol::account::ConsistencyLevel;
use protocol::lsn::Lsn;
use protocol::partition::EpkRange;
use protocol::resource_id::{ContainerRid, ItemRid};

use super::conflicts::Conflicts;
use super::contents::Contents;
use super::head::Head;
use super::home::Home;
use super::kept::KeptMesh;
use super::line::Line;
use super::mesh::{self, Mesh, TooFarBehind};
use super::post::Post;
use super::reach::{Progress, VersionVector};
use super::state::PartitionState;
use super::transaction::Transaction;
use super::viewed::Viewed;
use crate::charge::PartitionThroughput;
use crate::disk::{Disk, DiskError, LineKey, Malformed, MeshEntry, MeshKey};
use crate::items::Ordinal;
use crate::regions::{ReadContext, RegionId, Regions, StalenessBound};

/// The LSN of a partition nothing has been written to.
pub(super) const LSN_FIRST: Lsn = Lsn(1);
/// The version of session tokens of a partition that never was several.
pub(super) const TOKEN_VERSION_FIRST: i64 = -1;
/// The same where tokens name regions.
const TOKEN_VERSION_FIRST_OF_MANY: i64 = 1;

/// One range of the ring, with its items.
pub struct Partition {
    pub identity: PartitionIdentity,
    pub range: EpkRange,
    /// The ranges it came from, oldest first.
    pub parents: Vec<u32>,
    /// What it may spend and has spent.
    pub throughput: PartitionThroughput,
    /// Until when, in milliseconds of uptime, those who ask for it by its id are told to wait: it is
    /// about to be replaced.
    splitting_until_ms: AtomicU64,
    /// Who writes it, where partitions fail over one by one.
    write_region: Home,
    copies: Copies,
    surroundings: Surroundings,
}

/// The copies of a partition.
enum Copies {
    /// One region writes.
    Viewed(Viewed),
    /// All regions write.
    Mesh(Mesh),
}

/// What a partition shares with its container.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) regions: Arc<Regions>,
    /// Where the next item's number comes from.
    pub(super) ordinals: Arc<AtomicU64>,
    /// Bytes a partition holds before it is split.
    pub(super) bytes_max: u64,
    /// Where commits are kept, if anywhere.
    pub(super) disk: Option<Arc<Disk>>,
}

/// What a partition's items have in common.
#[derive(Clone, Debug)]
pub struct PartitionIdentity {
    /// The range id, as clients see it.
    pub id: u32,
    /// Of its session tokens: grows when partitions merge.
    pub token_version: i64,
    container: ContainerRid,
    /// `dbs/{rid}/colls/{rid}/`.
    pub(super) container_link: String,
}

impl PartitionIdentity {
    pub(super) fn new(id: u32, container: ContainerRid, token_version: i64) -> PartitionIdentity {
        PartitionIdentity { id, token_version, container, container_link: container.self_link() }
    }

    /// The name of its commits on disk, of those in one of its lines.
    pub(super) fn line_key(&self, line: u8) -> LineKey {
        LineKey { container: self.container, line, partition: self.id }
    }

    /// The name of something that is kept of its copies.
    pub(super) fn mesh_key(&self, what: MeshEntry) -> MeshKey {
        MeshKey { container: self.container, partition: self.id, what }
    }

    pub(super) fn item_rid(&self, ordinal: Ordinal) -> String {
        ItemRid { container: self.container, ordinal: ordinal.0 }.to_string()
    }
}

/// When a write happens, and where.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext {
    pub region: RegionId,
    /// Seconds since the epoch.
    pub now: u64,
    pub uptime: Duration,
}

/// What a write came to.
pub struct WriteOutcome<T, E> {
    pub result: Result<T, E>,
    /// How far the copy is afterwards: what the session token says.
    pub progress: Progress,
    /// The uptime at which most regions will have it.
    pub quorum_at: Duration,
}

/// Why a partition takes no write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// It is no more; others have taken over.
    Retired,
    /// Another region cannot be told about it.
    TooFarBehind,
    /// Another region is staler than agreed.
    TooStale,
    /// It is written in another region.
    Elsewhere,
}

impl From<TooFarBehind> for Closed {
    fn from(TooFarBehind: TooFarBehind) -> Closed {
        Closed::TooFarBehind
    }
}

impl Partition {
    /// A partition with something in it, which every region sees.
    pub(super) fn new(
        identity: PartitionIdentity,
        range: EpkRange,
        parents: Vec<u32>,
        contents: Contents,
        surroundings: Surroundings,
    ) -> Partition {
        let topology = surroundings.regions.current();
        let copies = if topology.is_multi_write() {
            Copies::Mesh(Mesh::new(&contents, topology.len()))
        } else {
            Copies::Viewed(Viewed::new(contents, topology.len()))
        };
        drop(topology);
        let (meter, held_until_ms, home) =
            (PartitionThroughput::default(), AtomicU64::new(0), Home::with_the_account());
        Partition {
            identity,
            range,
            parents,
            throughput: meter,
            splitting_until_ms: held_until_ms,
            write_region: home,
            copies,
            surroundings,
        }
    }

    /// A partition that was read from disk: `contents` for each line, and what was kept of its copies
    /// where every region writes.
    pub(super) fn restored(
        identity: PartitionIdentity,
        range: EpkRange,
        parents: Vec<u32>,
        mut contents: Vec<Contents>,
        kept: &[(MeshEntry, Bytes)],
        surroundings: Surroundings,
    ) -> Result<Partition, Malformed> {
        let topology = Guard::into_inner(surroundings.regions.current());
        if !topology.is_multi_write() {
            let contents = contents.pop().ok_or(Malformed)?;
            return Ok(Partition::new(identity, range, parents, contents, surroundings));
        }
        let kept = KeptMesh::read(kept, topology.len())?;
        for (region, contents) in (0..).zip(&mut contents) {
            let known = kept.copies.get(&region).map(|copy| copy.progress.clone());
            contents.head.versions = known.unwrap_or_else(|| VersionVector::none_of(topology.len()));
        }
        let Surroundings { ordinals, .. } = &surroundings;
        let post =
            Post { topology: &topology, identity: &identity, ordinals, disk: None, uptime: Duration::ZERO };
        let copies = Copies::Mesh(Mesh::restored(&post, contents, kept));
        let (meter, held_until_ms, home) =
            (PartitionThroughput::default(), AtomicU64::new(0), Home::with_the_account());
        Ok(Partition {
            identity,
            range,
            parents,
            throughput: meter,
            splitting_until_ms: held_until_ms,
            write_region: home,
            copies,
            surroundings,
        })
    }

    /// Whether it is about to be replaced by others.
    pub fn is_splitting(&self, uptime: Duration) -> bool {
        let until_ms = self.splitting_until_ms.load(Ordering::Acquire);
        until_ms != 0 && uptime.as_millis() < u128::from(until_ms)
    }

    /// Says that it is about to be replaced, which ends by itself at this uptime. Zero: it is not.
    pub(crate) fn mark_splitting_until(&self, uptime: Duration) {
        let until_ms = u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX);
        self.splitting_until_ms.store(until_ms, Ordering::Release);
    }

    /// The items by identity as seen from `read_context`. Never waits for long.
    pub fn head(&self, vantage: ReadContext) -> Guard<Arc<Head>> {
        match &self.copies {
            Copies::Viewed(copies) => copies.peek(self.at_home(vantage)),
            Copies::Mesh(copies) => self.with_post(vantage.uptime, |post| copies.peek(post, vantage.region)),
        }
    }

    /// The state as seen from `read_context`.
    pub(crate) fn snapshot(&self, vantage: ReadContext) -> Arc<PartitionState> {
        match &self.copies {
            Copies::Viewed(copies) => copies.snapshot(self.at_home(vantage)),
            Copies::Mesh(copies) => {
                self.with_post(vantage.uptime, |post| copies.snapshot(post, vantage.region))
            }
        }
    }

    /// The newest items by identity, as the region has them that decides.
    pub fn latest_head(&self) -> Guard<Arc<Head>> {
        self.line().peek()
    }

    /// The newest of every line.
    #[cfg(test)]
    pub(crate) fn every_line(&self) -> Vec<(Arc<Head>, Arc<PartitionState>)> {
        self.lines().map(|line| (Guard::into_inner(line.peek()), line.snapshot())).collect()
    }

    /// The newest state, as the region has it that decides.
    pub fn latest_state(&self) -> Arc<PartitionState> {
        self.line().snapshot()
    }

    /// Every line, the deciding one first.
    pub(super) fn lines(&self) -> impl Iterator<Item = &Line> {
        let (one, each) = match &self.copies {
            Copies::Viewed(copies) => (Some(&copies.line), None),
            Copies::Mesh(copies) => (None, Some(copies.lines())),
        };
        one.into_iter().chain(each.into_iter().flatten())
    }

    /// Runs `work` as one transaction and publishes its changes if it succeeded. Writers take turns,
    /// so `work` must not ask for a snapshot.
    pub(super) fn write<T, E: From<DiskError>>(
        &self,
        moment: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<WriteOutcome<T, E>, Closed> {
        if self.keeps_others_stale(moment) {
            return Err(Closed::TooStale);
        }
        let copies = match &self.copies {
            Copies::Viewed(_) if !self.is_written_in(moment.region) => return Err(Closed::Elsewhere),
            Copies::Viewed(copies) => copies,
            Copies::Mesh(copies) => {
                copies.check_room()?;
                let committed =
                    self.with_post(moment.uptime, |post| mesh::commit(copies, post, moment, work));
                return committed.ok_or(Closed::Retired);
            }
        };
        let mut turn = copies.line.turn();
        if turn.is_retired() {
            return Err(Closed::Retired);
        }
        let head = turn.head();
        let ordinals = &self.surroundings.ordinals;
        let mut transaction =
            Transaction::new(Head::clone(&head), turn.state(), &self.identity, ordinals, moment.now);
        let result = work(&mut transaction);
        let Some(outcome) = transaction.finish().filter(|_| result.is_ok()) else {
            return Ok(WriteOutcome { result, progress: head.progress(), quorum_at: Duration::ZERO });
        };
        if self.surroundings.disk.is_some() {
            let kept = self.with_post(moment.uptime, |post| {
                post.keep(|batch| post.put_outcome(batch, RegionId(0), turn.state(), &outcome))
            });
            if let Err(error) = kept {
                let (result, reach) = (Err(error.into()), head.progress());
                return Ok(WriteOutcome { result, progress: reach, quorum_at: Duration::ZERO });
            }
        }
        let head = turn.commit(outcome);
        let topology = || Guard::into_inner(self.surroundings.regions.current());
        let quorum_at = copies.replicate(self.identity.id, &head, moment, topology);
        Ok(WriteOutcome { result, progress: head.progress(), quorum_at })
    }

    /// The region of its own that takes its writes, if it has one.
    pub fn write_region(&self) -> Option<RegionId> {
        self.write_region.own()
    }

    /// Whether a write that has come this far may be made from `region`.
    fn is_written_in(&self, region: RegionId) -> bool {
        let topology = self.surroundings.regions.current();
        !topology.has_partition_failover() || self.write_region.takes_writes(region, &topology)
    }

    /// From the region that writes it, everything is seen.
    fn at_home(&self, vantage: ReadContext) -> ReadContext {
        if self.write_region.own() == Some(vantage.region) {
            return ReadContext { staleness: StalenessBound::Newest, ..vantage };
        }
        vantage
    }

    /// Whether a region is staler at `uptime` than bounded staleness allows, and nothing reaches it.
    pub fn is_too_stale(&self, region: RegionId, uptime: Duration) -> bool {
        let topology = self.surroundings.regions.current();
        match &self.copies {
            Copies::Viewed(_) if topology.takes_item_writes(region) => false,
            Copies::Viewed(copies) => copies.is_too_stale(&topology, region, uptime),
            Copies::Mesh(copies) => self.with_post(uptime, |post| copies.is_too_stale(post, region)),
        }
    }

    /// Whether a write has to wait for a region that is staler than agreed.
    fn keeps_others_stale(&self, moment: WriteContext) -> bool {
        let topology = self.surroundings.regions.current();
        topology.consistency == ConsistencyLevel::BoundedStaleness
            && topology.regions().any(|(id, there)| {
                let waits = id != moment.region && there.paused_at.is_some();
                waits && self.is_too_stale(id, moment.uptime)
            })
    }

    /// Versions that lost against another region's.
    pub fn conflicts(&self) -> Option<MutexGuard<'_, Conflicts>> {
        match &self.copies {
            Copies::Viewed(_) => None,
            Copies::Mesh(copies) => Some(copies.conflicts.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    fn line(&self) -> &Line {
        match &self.copies {
            Copies::Viewed(copies) => &copies.line,
            Copies::Mesh(copies) => copies.hub(),
        }
    }

    fn with_post<T>(&self, uptime: Duration, work: impl FnOnce(&Post<'_>) -> T) -> T {
        let topology = self.surroundings.regions.current();
        let Partition { identity, surroundings: Surroundings { ordinals, disk, .. }, .. } = self;
        work(&Post { topology: &topology, identity, ordinals, disk: disk.as_deref(), uptime })
    }
}

/// The version that session tokens of a new container begin with.
pub(super) fn first_token_version(regions: &Regions) -> i64 {
    if regions.current().is_multi_write() { TOKEN_VERSION_FIRST_OF_MANY } else { TOKEN_VERSION_FIRST }
}
