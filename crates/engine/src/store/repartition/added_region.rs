//! A further write region for the partitions of a container.
//!
//! Each partition is replaced by one with the same range, id and contents, and with one more replica: a copy of
//! what the hub has once everything in flight was delivered. Several containers get it atomically, in the steps
//! of a restore: `lock_layout` fixes the layout, `begin` takes every write guard, `put` adds the copy to the
//! disk's batch, and `finish` publishes it. A writer that waited for a guard finds the partition replaced and
//! goes on in the new one.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::disk::{Batch, ChainOrigin, DiskError};
use crate::store::container::Container;
use crate::store::partition::{Partition, PartitionIdentity, TOKEN_VERSION_FIRST_MULTI_WRITE};
use crate::store::repartition::layout::Layout;
use crate::store::replica::change_log::ChangeLog;
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::state::PartitionState;
use crate::store::replica::version_chain::WriteGuard;

/// A container whose layout is fixed while a write region is added.
pub(crate) struct FixedLayout<'a> {
    container: &'a Container,
    layout: MutexGuard<'a, Layout>,
    current: Arc<Vec<Arc<Partition>>>,
}

/// A container under its write guards, about to get a replica in a further region.
pub(crate) struct RegionAddition<'a> {
    container: &'a Container,
    layout: &'a mut Layout,
    next_layout: Layout,
    /// The write guards of each partition, by version chain.
    guards: Vec<Vec<WriteGuard<'a>>>,
    /// What the new region holds of each partition.
    copies: Vec<ReplicaContents>,
    /// The number of the new region's version chain.
    chain: u8,
    made: Vec<Arc<Partition>>,
}

impl Container {
    /// Fixes the container's layout until a write region was added.
    pub(crate) fn lock_layout(&self) -> FixedLayout<'_> {
        let layout = self.layout.lock();
        let current = self.partitions.load_full();
        current.iter().for_each(|partition| partition.wait_for_index());
        FixedLayout { container: self, layout, current }
    }
}

impl<'a> FixedLayout<'a> {
    /// Takes every write guard, delivers what is in flight, and makes the partitions of `regions` regions. Cost
    /// does not grow with the items.
    pub(crate) fn begin<'h>(&'h mut self, regions: usize) -> Result<RegionAddition<'h>, DiskError>
    where
        'a: 'h,
    {
        let FixedLayout { container, layout, current } = self;
        let container: &'h Container = container;
        let current: &'h [Arc<Partition>] = current;
        let mut guards: Vec<Vec<WriteGuard<'h>>> =
            current.iter().map(|partition| partition.close()).collect::<Result<_, DiskError>>()?;
        let mut next_layout = Layout::clone(layout);
        let (mut copies, mut made) = (Vec::with_capacity(current.len()), Vec::with_capacity(current.len()));
        for (partition, guards) in current.iter().zip(&mut guards) {
            let mut replicas: Vec<ReplicaContents> =
                guards.iter_mut().map(|guard| contents_of(guard, regions)).collect();
            let copy = without_log(replicas[0].clone());
            let chains = replicas.len();
            let mut origins = next_layout.origins(partition.identity.id, chains);
            origins.push(copy.state.origin());
            next_layout.set_origins(partition.identity.id, origins);
            replicas.push(copy.clone());
            made.push(Arc::new(extended(container, partition, replicas)));
            copies.push(copy);
        }
        // An account has 16 regions at the most.
        let chain = (regions - 1) as u8;
        Ok(RegionAddition { container, layout, next_layout, guards, copies, chain, made })
    }
}

impl RegionAddition<'_> {
    /// Adds the copy to the disk's batch. Cost grows with the items.
    pub(crate) fn put(&self, batch: &mut Batch) {
        for item in self.copies.iter().flat_map(|copy| copy.state.items()) {
            batch.put_item(self.container.rid, self.chain, item);
        }
        self.container.put_layout(batch, &self.next_layout, &self.made);
        self.made.iter().for_each(|partition| partition.put_replicas(batch));
    }

    /// Publishes the partitions with the new replica. The topology has the region by now.
    pub(crate) fn finish(self) {
        let RegionAddition { container, layout, next_layout, mut guards, made, .. } = self;
        *layout = next_layout;
        container.partitions.store(Arc::new(made));
        guards.iter_mut().flatten().for_each(|guard| guard.mark_replaced());
    }
}

/// What a replica holds, with room for the commits of `regions` regions in its version vector.
fn contents_of(guard: &mut WriteGuard<'_>, regions: usize) -> ReplicaContents {
    let mut head = Head::clone(&guard.head());
    head.versions = head.versions.extended(regions);
    ReplicaContents { head, state: PartitionState::clone(&guard.snapshot()) }
}

/// The contents with an empty change log: the changes so far are those of another region's chain.
fn without_log(mut contents: ReplicaContents) -> ReplicaContents {
    contents.state.log = ChangeLog::starting_after(contents.state.lsn);
    contents
}

/// The partition that replaces `old`. Its session tokens have another version, because they name one region
/// more: clients never compare the two.
fn extended(container: &Container, old: &Partition, replicas: Vec<ReplicaContents>) -> Partition {
    let version = (old.identity.token_version + 1).max(TOKEN_VERSION_FIRST_MULTI_WRITE);
    let identity = PartitionIdentity::new(old.identity.id, container.rid, version);
    let context = container.context.clone();
    Partition::with_write_regions(identity, (old.range.clone(), old.parents.clone()), replicas, old, context)
}

impl Layout {
    /// Where the first `chains` version chains of a range begin.
    fn origins(&self, id: u32, chains: usize) -> Vec<ChainOrigin> {
        let known = self.known_origins(id);
        (0..chains).map(|chain| *known.get(chain).unwrap_or(&known[0])).collect()
    }
}
