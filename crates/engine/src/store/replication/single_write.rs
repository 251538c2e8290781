//! The replicas of a partition in an account where one region writes: the writer's version chain, and
//! each other region's view of it.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::Guard;
use protocol::account::ConsistencyLevel;
use protocol::lsn::Lsn;

use crate::disk::DiskError;
use crate::regions::{MaxStaleness, PerRegion, ReadContext, RegionId, StalenessBound, Topology};
use crate::store::partition::{Partition, WriteBlocked, WriteContext, WriteOutcome};
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::state::PartitionState;
use crate::store::replica::version_chain::VersionChain;
use crate::store::replication::follower_view::FollowerView;
use crate::store::replication::replica_set::ReplicaSet;
use crate::store::transaction::Transaction;

/// One version chain, followed by the regions that do not write.
pub(in crate::store) struct SingleWriteReplicas {
    chain: VersionChain,
    /// The views of the regions that have been sent a commit. A region without one sees the newest version:
    /// nothing was committed since it was added.
    views: PerRegion<FollowerView>,
}

impl SingleWriteReplicas {
    /// Replicas of `contents`, which every region sees.
    pub(in crate::store) fn new(contents: ReplicaContents) -> SingleWriteReplicas {
        let chain = VersionChain::new(contents.head, contents.state);
        SingleWriteReplicas { chain, views: PerRegion::default() }
    }

    /// Schedules a commit, from `before` to `head`, at the other regions' views, and returns when a majority
    /// will have it. Called under the write guard that committed it, so that commits reach the views in order.
    fn replicate(
        &self,
        partition: u32,
        (before, head): (&Arc<Head>, &Arc<Head>),
        write: WriteContext,
        topology: &Topology,
    ) -> Duration {
        if topology.region_count() == 1 {
            return Duration::ZERO;
        }
        // Only strongly consistent writers wait for other regions.
        let waits = topology.consistency == ConsistencyLevel::Strong;
        let mut dues = Vec::new();
        for (id, region) in topology.regions().filter(|(id, _)| *id != write.region) {
            let view = self.views.get_or_make(id, || FollowerView::new(Arc::clone(before)));
            let due = if region.paused_at.is_some() {
                view.record_missed(write.uptime);
                Duration::MAX
            } else {
                let lag = topology.lag(write.region, id);
                let due = write.uptime + lag.at(lag_fraction(partition, head.lsn, id));
                view.push(head, write.uptime, due);
                due
            };
            if waits {
                dues.push(due);
            }
        }
        dues.sort_unstable();
        // The writer is one of the majority.
        let others = topology.region_count() / 2;
        others.checked_sub(1).and_then(|at| dues.get(at).copied()).unwrap_or(Duration::ZERO)
    }
}

impl ReplicaSet for SingleWriteReplicas {
    fn head(&self, partition: &Partition, read: ReadContext) -> Guard<Arc<Head>> {
        let read = partition.local_read(read);
        match (read.staleness, self.views.get(read.region)) {
            (StalenessBound::Newest, _) | (_, None) => self.chain.head(),
            (StalenessBound::Replicated(uptime), Some(view)) => view.head(uptime),
            (StalenessBound::Bounded(uptime, bound), Some(view)) => view.head_bounded(uptime, bound),
        }
    }

    fn snapshot(&self, partition: &Partition, read: ReadContext) -> Arc<PartitionState> {
        let read = partition.local_read(read);
        match (read.staleness, self.views.get(read.region)) {
            (StalenessBound::Newest, _) | (_, None) => self.chain.snapshot(),
            (StalenessBound::Replicated(_) | StalenessBound::Bounded(..), Some(view)) => {
                let lsn = self.head(partition, read).lsn;
                view.state(&self.chain.snapshot(), lsn)
            }
        }
    }

    fn primary(&self) -> &VersionChain {
        &self.chain
    }

    fn chain(&self, number: usize) -> Option<&VersionChain> {
        (number == 0).then_some(&self.chain)
    }

    fn write<T, E: From<DiskError>>(
        &self,
        partition: &Partition,
        write: WriteContext,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, E>,
    ) -> Result<WriteOutcome<T, E>, WriteBlocked> {
        if !partition.accepts_writes_from(write.region) {
            return Err(WriteBlocked::NotWriteRegion);
        }
        let mut guard = self.chain.write_guard();
        if guard.is_replaced() {
            return Err(WriteBlocked::Replaced);
        }
        let before = guard.head();
        let ordinals = &partition.context.ordinals;
        let mut transaction =
            Transaction::new(Head::clone(&before), guard.state(), &partition.identity, ordinals, write.now);
        let result = work(&mut transaction);
        let Some(outcome) = transaction.finish().filter(|_| result.is_ok()) else {
            return Ok(WriteOutcome { result, progress: before.progress(), quorum_at: Duration::ZERO });
        };
        if partition.context.disk.is_some() {
            let persisted = partition.with_replication(write.uptime, |context| {
                context.persist(|batch| context.put_outcome(batch, RegionId(0), guard.state(), &outcome))
            });
            if let Err(error) = persisted {
                let (result, progress) = (Err(error.into()), before.progress());
                return Ok(WriteOutcome { result, progress, quorum_at: Duration::ZERO });
            }
        }
        let head = guard.commit(outcome);
        let topology = partition.context.regions.current();
        let quorum_at = self.replicate(partition.identity.id, (&before, &head), write, &topology);
        Ok(WriteOutcome { result, progress: head.progress(), quorum_at })
    }

    /// Only a region whose replication is paused can be too stale: any other one catches up as it is read.
    fn is_too_stale(
        &self,
        _partition: &Partition,
        topology: &Topology,
        region: RegionId,
        uptime: Duration,
    ) -> bool {
        if topology.takes_item_writes(region) {
            return false;
        }
        let (Some(view), Some(paused)) =
            (self.views.get(region), topology.region(region).paused_at.filter(|at| *at < uptime))
        else {
            return false;
        };
        let MaxStaleness { versions, interval } = topology.staleness;
        // Whatever was older than the limit when replication was paused had arrived by then.
        view.head_bounded(paused, topology.staleness);
        let since = view.behind_since(paused);
        since.is_some_and(|since| since + interval < uptime)
            || self.chain.head().lsn.0 - view.head(paused).lsn.0 > versions
    }

    fn catch_up(&self, region: RegionId) {
        let guard = self.chain.write_guard();
        if let Some(view) = self.views.get(region) {
            view.jump_to(guard.head());
        }
    }

    fn resume(&self, region: RegionId, uptime: Duration, due: Duration) {
        let guard = self.chain.write_guard();
        if let Some(view) = self.views.get(region) {
            view.catch_up_at(&guard.head(), uptime, due);
        }
    }

    fn publish_everywhere(&self, head: &Arc<Head>) {
        self.views.iter().for_each(|(_, view)| view.jump_to(Arc::clone(head)));
    }

    /// The view caches the state until the region moves on.
    fn visible_state(&self, region: RegionId, uptime: Duration) -> Option<Arc<PartitionState>> {
        let view = match self.views.get(region) {
            Some(view) => view,
            // Under the write guard: a commit in progress would make the view see less than it has seen.
            None => {
                let guard = self.chain.write_guard();
                self.views.get_or_make(region, || FollowerView::new(guard.head()))
            }
        };
        let lsn = view.head(uptime).lsn;
        Some(view.state(&self.chain.snapshot(), lsn))
    }

    fn behind_since(&self, region: RegionId, uptime: Duration) -> Option<Duration> {
        self.views.get(region)?.behind_since(uptime)
    }

    fn set_follower_view(&mut self, region: RegionId, view: FollowerView) {
        self.views.set(region, view);
    }
}

/// A value from zero to one that depends on the commit and the region alone, so that a replayed run sees
/// the same lags. The finaliser of SplitMix64: neighbouring LSNs give unrelated values. By hand, because a
/// random source that is seeded anew for each commit would cost more than these five operations.
fn lag_fraction(partition: u32, lsn: Lsn, region: RegionId) -> f64 {
    let mut bits = lsn.0 ^ (u64::from(partition) << 40) ^ (u64::from(region.0) << 56);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}
