//! A physical partition: a range of the ring, with its items as every region sees them.
//!
//! In an account that writes in one region there is one line of states, and each other region has a
//! view of it. Which state a request gets is decided by its [`Vantage`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::Guard;
use protocol::lsn::Lsn;
use protocol::partition::EpkRange;
use protocol::resource_id::{ContainerRid, ItemRid};

use super::head::Head;
use super::item::Ordinal;
use super::line::{Line, Turn};
use super::schema::Schema;
use super::state::State;
use super::transaction::Transaction;
use super::view::View;
use crate::charge::Meter;
use crate::regions::{RegionId, Sees, Topology, Vantage};

/// The LSN of a partition nothing has been written to.
const LSN_FIRST: Lsn = Lsn(1);
/// The version of session tokens of a partition that never was several.
const TOKEN_VERSION_FIRST: i64 = -1;

/// One range of the ring, with its items.
pub(crate) struct Partition {
    pub(crate) identity: Identity,
    pub(crate) range: EpkRange,
    /// The ranges it came from, oldest first.
    pub(crate) parents: Vec<u32>,
    /// What it may spend and has spent.
    pub(crate) meter: Meter,
    /// Whether those who ask for it by its id are told to wait: it is about to be replaced.
    splitting: AtomicBool,
    line: Line,
    /// One per region; none where there is only one region.
    views: Vec<View>,
}

/// What a partition's items have in common.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// The range id, as clients see it.
    pub(crate) id: u32,
    /// Of its session tokens: grows when partitions merge.
    pub(crate) token_version: i64,
    container: ContainerRid,
    /// `dbs/{rid}/colls/{rid}/`.
    pub(super) container_link: String,
}

impl Identity {
    pub(super) fn new(id: u32, container: ContainerRid, token_version: i64) -> Identity {
        Identity { id, token_version, container, container_link: container.self_link() }
    }

    pub(super) fn item_rid(&self, ordinal: Ordinal) -> String {
        ItemRid { container: self.container, ordinal: ordinal.0 }.to_string()
    }
}

/// A partition as one region sees it, or as it was.
#[derive(Clone)]
pub(crate) struct Replica {
    partition: Arc<Partition>,
    vantage: Vantage,
    /// What it sees whatever happens.
    pinned: Option<Arc<State>>,
}

impl Replica {
    pub(crate) fn new(partition: Arc<Partition>, vantage: Vantage) -> Replica {
        Replica { partition, vantage, pinned: None }
    }

    /// A partition as it was.
    pub(crate) fn pinned(partition: Arc<Partition>, vantage: Vantage, state: Arc<State>) -> Replica {
        Replica { partition, vantage, pinned: Some(state) }
    }

    /// The same partition as it was at `lsn`, if that is still known.
    pub(crate) fn at(&self, lsn: Lsn) -> Option<Replica> {
        let mut state = State::clone(&self.snapshot());
        if !state.log.reaches(lsn) || lsn > state.lsn {
            return None;
        }
        state.go_back(lsn);
        Some(Replica::pinned(self.partition(), self.vantage, Arc::new(state)))
    }

    /// The partition itself.
    pub(crate) fn partition(&self) -> Arc<Partition> {
        Arc::clone(&self.partition)
    }

    /// The items by identity, for a short look. Never waits, whatever writers are doing.
    pub(crate) fn peek(&self) -> Guard<Arc<Head>> {
        self.partition.peek(self.vantage)
    }

    /// The whole state, to keep. May wait for a write in progress, and for nothing else.
    pub(crate) fn snapshot(&self) -> Arc<State> {
        match &self.pinned {
            Some(state) => Arc::clone(state),
            None => self.partition.snapshot(self.vantage),
        }
    }

    /// How far it is.
    pub(crate) fn lsn(&self) -> Lsn {
        self.pinned.as_ref().map_or_else(|| self.peek().lsn, |state| state.lsn)
    }
}

impl std::ops::Deref for Replica {
    type Target = Partition;

    fn deref(&self) -> &Partition {
        &self.partition
    }
}

/// When a write happens, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) region: RegionId,
    /// Seconds since the epoch.
    pub(crate) now: u64,
    pub(crate) uptime: Duration,
}

/// What a write came to.
pub(crate) struct Commit<T, E> {
    pub(crate) result: Result<T, E>,
    /// The partition's LSN afterwards: what the session token says.
    pub(crate) lsn: Lsn,
    /// The uptime at which most regions will have it.
    pub(crate) quorum_at: Duration,
}

/// The partition is no more; others have taken over.
#[derive(Debug)]
pub(super) struct Retired;

impl Partition {
    /// An empty partition of an account with so many regions.
    pub(super) fn new(
        id: u32,
        container: ContainerRid,
        range: EpkRange,
        schema: &Arc<Schema>,
        regions: usize,
    ) -> Partition {
        let head = Head::new(Arc::clone(schema), LSN_FIRST);
        let state = State::new(Arc::clone(schema), LSN_FIRST);
        let identity = Identity::new(id, container, TOKEN_VERSION_FIRST);
        Partition::with(identity, range, Vec::new(), Line::new(head, state), regions)
    }

    /// A partition with something in it, which every region sees.
    pub(super) fn with(
        identity: Identity,
        range: EpkRange,
        parents: Vec<u32>,
        line: Line,
        regions: usize,
    ) -> Partition {
        let views = if regions > 1 { regions } else { 0 };
        let newest = Guard::into_inner(line.peek());
        let views = (0..views).map(|_| View::new(Arc::clone(&newest))).collect();
        let splitting = AtomicBool::new(false);
        Partition { identity, range, parents, meter: Meter::default(), splitting, line, views }
    }

    /// Whether it is about to be replaced by others.
    pub(crate) fn is_splitting(&self) -> bool {
        self.splitting.load(Ordering::Acquire)
    }

    /// Says that it is about to be replaced, or that it is not after all.
    pub(crate) fn set_splitting(&self, splitting: bool) {
        self.splitting.store(splitting, Ordering::Release);
    }

    /// The items by identity as seen from `vantage`. Never waits.
    pub(crate) fn peek(&self, vantage: Vantage) -> Guard<Arc<Head>> {
        match (vantage.sees, self.views.get(vantage.region.index())) {
            (Sees::Newest, _) | (_, None) => self.line.peek(),
            (Sees::Replicated(uptime), Some(view)) => view.peek(uptime),
            (Sees::Bounded(uptime, bound), Some(view)) => view.peek_bounded(uptime, bound),
        }
    }

    /// The state as seen from `vantage`.
    pub(crate) fn snapshot(&self, vantage: Vantage) -> Arc<State> {
        match (vantage.sees, self.views.get(vantage.region.index())) {
            (Sees::Newest, _) | (_, None) => self.line.snapshot(),
            (Sees::Replicated(_) | Sees::Bounded(..), Some(view)) => {
                let lsn = self.peek(vantage).lsn;
                view.state(&self.line.snapshot(), lsn)
            }
        }
    }

    /// The newest items by identity, wherever they were written.
    pub(crate) fn newest(&self) -> Guard<Arc<Head>> {
        self.line.peek()
    }

    /// The newest state.
    pub(crate) fn newest_snapshot(&self) -> Arc<State> {
        self.line.snapshot()
    }

    /// Runs `work` as one transaction and publishes its changes if it succeeded. Writers take turns,
    /// so `work` must not ask for a snapshot.
    pub(super) fn write<T, E>(
        &self,
        ordinals: &AtomicU64,
        moment: Moment,
        topology: impl FnOnce() -> Arc<Topology>,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<Commit<T, E>, Retired> {
        let mut turn = self.line.turn();
        if turn.is_retired() {
            return Err(Retired);
        }
        let head = turn.head();
        let mut transaction =
            Transaction::new(Head::clone(&head), turn.state(), &self.identity, ordinals, moment.now);
        let result = work(&mut transaction);
        let outcome = transaction.finish().filter(|_| result.is_ok());
        let Some(outcome) = outcome else {
            return Ok(Commit { result, lsn: head.lsn, quorum_at: Duration::ZERO });
        };
        let head = turn.commit(outcome);
        // Within the turn, so that no other commit is replicated before this one.
        let quorum_at =
            if self.views.is_empty() { Duration::ZERO } else { self.replicate(&head, moment, &topology()) };
        Ok(Commit { result, lsn: head.lsn, quorum_at })
    }

    /// Sends a commit on its way to the other regions, and says when most will have it.
    fn replicate(&self, head: &Arc<Head>, moment: Moment, topology: &Topology) -> Duration {
        let mut dues = Vec::with_capacity(self.views.len());
        for (id, region) in topology.regions().filter(|(id, _)| *id != moment.region) {
            if region.paused_at.is_some() {
                dues.push(Duration::MAX);
                continue;
            }
            let lag = topology.lag(moment.region, id);
            let due = moment.uptime + lag.at(draw(self.identity.id, head.lsn, id));
            self.views[id.index()].push(head, moment.uptime, due);
            dues.push(due);
        }
        dues.sort_unstable();
        // The writer is one of the majority.
        let others = topology.len() / 2;
        if others == 0 { Duration::ZERO } else { dues[others - 1] }
    }

    /// Lets a region see everything at once: it begins to write, or has just stopped.
    pub(super) fn catch_up(&self, region: RegionId) {
        let turn = self.line.turn();
        if let Some(view) = self.views.get(region.index()) {
            view.jump(turn.head());
        }
    }

    /// Lets every region see `head` at once.
    pub(super) fn show_everywhere(&self, head: &Arc<Head>) {
        self.views.iter().for_each(|view| view.jump(Arc::clone(head)));
    }

    /// Keeps what a region sees now, which nothing new will reach.
    pub(super) fn pause(&self, region: RegionId, uptime: Duration) {
        // The state stays worked out.
        self.seen(region, uptime);
    }

    /// Lets a region that was paused see everything, at `due`.
    pub(super) fn resume(&self, region: RegionId, uptime: Duration, due: Duration) {
        let turn = self.line.turn();
        if let Some(view) = self.views.get(region.index()) {
            view.push(&turn.head(), uptime, due);
        }
    }

    /// Takes on other rules. Regions see them at once, and with them everything written so far.
    pub(super) fn adopt(&self, schema: &Arc<Schema>) {
        let mut turn = self.line.turn();
        turn.adopt(schema);
        self.show_everywhere(&turn.head());
    }

    /// The writer's turn, for what is more than a transaction.
    pub(super) fn turn(&self) -> Turn<'_> {
        self.line.turn()
    }

    /// What a region sees, to keep.
    pub(super) fn seen(&self, region: RegionId, uptime: Duration) -> Option<Arc<State>> {
        let view = self.views.get(region.index())?;
        let lsn = view.peek(uptime).lsn;
        Some(view.state(&self.line.snapshot(), lsn))
    }

    /// Decides what a region sees of a partition that is being made.
    pub(super) fn set_view(&mut self, region: RegionId, view: View) {
        if let Some(place) = self.views.get_mut(region.index()) {
            *place = view;
        }
    }
}

/// From zero to one, and always the same for the same commit and region.
fn draw(partition: u32, lsn: Lsn, region: RegionId) -> f64 {
    // The finaliser of a well-known generator: neighbouring seeds give unrelated draws.
    let mut bits = lsn.0 ^ (u64::from(partition) << 40) ^ (u64::from(region.0) << 56);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
