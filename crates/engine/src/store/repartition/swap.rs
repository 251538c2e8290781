//! Swapping partitions: what a split and a merge have in common.
//!
//! First the children are built from what the parents hold, and follow what is written meanwhile
//! (`child_partitions`). Then the parents are closed: under their last write guards the children become
//! partitions, are persisted, and take over. A failure before that leaves everything as it was.

use std::sync::Arc;
use std::time::Duration;

use protocol::partition::EpkRange;

use super::child_partitions::{ChildPartition, ChildPartitions};
use super::layout::{Layout, LayoutError};
use crate::disk::{Batch, DiskError};
use crate::regions::RegionId;
use crate::store::container::Container;
use crate::store::partition::{Partition, PartitionIdentity};
use crate::store::replica::version_chain::WriteGuard;
use crate::store::replication::follower_view::FollowerView;

/// How often, and how far apart, the swap checks whether readers still hold the parents.
const READER_CHECKS_MAX: u32 = 50;
const READER_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Which partitions replace which.
pub(in crate::store) struct PartitionSwap {
    /// The parents, in EPK order.
    pub(in crate::store) old: Vec<Arc<Partition>>,
    /// The ids and ranges of the children; together they cover the ranges of the parents.
    pub(in crate::store) new: Vec<(u32, EpkRange)>,
    pub(in crate::store) token_version: i64,
    pub(in crate::store) uptime: Duration,
}

impl Container {
    /// Carries a swap out. The caller holds the layout lock and has allocated the children's ids in
    /// `layout`. Returns the layout afterwards.
    pub(in crate::store) fn swap_partitions(
        &self,
        layout: Layout,
        swap: PartitionSwap,
    ) -> Result<Layout, LayoutError> {
        let mut children = ChildPartitions::of(&swap, &self.context.regions.current());
        let not_persisted = |error: DiskError| LayoutError::NotPersisted(error.to_string());
        children.follow().map_err(not_persisted)?;
        let mut guards = children.close().map_err(not_persisted)?;
        if swap.old.len() > 1 {
            // Checked again under the guards: a region that is paused from now on has seen all of this.
            self.check_caught_up()?;
        }
        let parents = ancestors(&swap.old);
        let mut next = layout;
        let finish = |child: ChildPartition| {
            let identity = PartitionIdentity::new(child.id, self.rid, swap.token_version);
            next.set_origins(child.id, child.chains.iter().map(|chain| chain.state.origin()).collect());
            Arc::new(self.build_partition(child, identity, &parents, &swap.old))
        };
        let made: Vec<Arc<Partition>> = children.into_children().into_iter().map(finish).collect();
        let mut partitions = Vec::clone(&self.partitions.load());
        let first = partitions.iter().position(|partition| Arc::ptr_eq(partition, &swap.old[0]));
        let first = first.unwrap_or(0);
        partitions.splice(first..first + swap.old.len(), made.iter().cloned());
        // Under the guards: the parents' commits come before it in the journal, and none after.
        self.persist_swap(&next, &swap.old, &made, &partitions)?;
        self.partitions.store(Arc::new(partitions));
        guards.iter_mut().flatten().for_each(WriteGuard::mark_replaced);
        drop(guards);
        wait_for_readers(&swap.old);
        Ok(next)
    }

    /// Makes a partition of a child that has caught up.
    fn build_partition(
        &self,
        child: ChildPartition,
        identity: PartitionIdentity,
        parents: &[u32],
        old: &[Arc<Partition>],
    ) -> Partition {
        let ChildPartition { range, chains, paused, .. } = child;
        let context = self.context.clone();
        let mut chains = (0..).map(RegionId).zip(chains);
        let (_, contents) = chains.next().expect("a partition has a version chain");
        let mut partition = Partition::new(identity, range, parents.to_vec(), contents, context);
        for (region, visible, since) in paused {
            partition.set_follower_view(region, FollowerView::of(visible, since));
        }
        partition.inherit_write_region(old);
        partition.inherit_conflicts(old);
        chains.for_each(|(region, own)| partition.set_replica(region, own));
        partition
    }

    /// Persists that `partitions` are now what there is, if the account has a data directory.
    fn persist_swap(
        &self,
        layout: &Layout,
        old: &[Arc<Partition>],
        made: &[Arc<Partition>],
        partitions: &[Arc<Partition>],
    ) -> Result<(), LayoutError> {
        let Some(disk) = &self.context.disk else { return Ok(()) };
        let mut batch = Batch::new(64 * partitions.len());
        self.put_layout(&mut batch, layout, partitions);
        old.iter().for_each(|partition| batch.remove_replication(self.rid, partition.identity.id));
        made.iter().for_each(|partition| partition.put_replicas(&mut batch));
        disk.append(batch).map_err(|error| LayoutError::NotPersisted(error.to_string()))
    }
}

/// Waits a moment until no reader holds the parents any more. Freeing what they held takes a while, and
/// should happen on this thread, not in the request that drops the last reference. Gives up after
/// [`READER_CHECKS_MAX`] checks: a long query may hold them for minutes.
fn wait_for_readers(old: &[Arc<Partition>]) {
    for _ in 0..READER_CHECKS_MAX {
        if old.iter().all(|partition| Arc::strong_count(partition) == 1) {
            return;
        }
        std::thread::sleep(READER_CHECK_INTERVAL);
    }
}

/// The ids of everything the parents descend from, and their own.
fn ancestors(old: &[Arc<Partition>]) -> Vec<u32> {
    let mut parents: Vec<u32> = old.iter().flat_map(|partition| partition.parents.clone()).collect();
    parents.sort_unstable();
    parents.dedup();
    parents.extend(old.iter().map(|partition| partition.identity.id));
    parents
}
