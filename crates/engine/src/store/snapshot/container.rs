//! Snapshots of a container in memory, and restoring them.
//!
//! Saving takes each partition's state, which costs nothing however much it holds: later writes make new
//! versions. LSNs only grow: a restored container continues after the LSN it had, so that no session token
//! and no entity tag ever means two things.
//!
//! A restore has steps, because several containers are restored atomically: `lock_for_restore` fixes their
//! layout, `begin` takes every write guard and computes what replaces the present contents, `put` adds it to
//! the disk's batch, and `finish` publishes it. Until then nothing has changed.

use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use parking_lot::MutexGuard;
use protocol::lsn::Lsn;
use protocol::partition::EpkRange;
use protocol::resource_id::ContainerRid;

use crate::disk::{Batch, ChainKey, ChainOrigin, DiskError};
use crate::items::{Item, Ordinal};
use crate::regions::{ReadContext, RegionId};
use crate::store::container::Container;
use crate::store::partition::view::PartitionView;
use crate::store::partition::{Partition, PartitionIdentity};
use crate::store::repartition::layout::Layout;
use crate::store::replica::change_log::ChangeLog;
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::head::Head;
use crate::store::replica::progress::VersionVector;
use crate::store::replica::state::PartitionState;
use crate::store::replica::version_chain::WriteGuard;

/// The partitions of a container at one point in time.
#[derive(Clone)]
pub struct ContainerSnapshot {
    partitions: Vec<PartitionSnapshot>,
    /// Ranges made later have at least this id.
    next_range_id: u32,
}

#[derive(Clone)]
struct PartitionSnapshot {
    partition: Arc<Partition>,
    /// One for each version chain, the deciding one first.
    replicas: Vec<ReplicaSnapshot>,
}

#[derive(Clone)]
struct ReplicaSnapshot {
    head: Arc<Head>,
    state: Arc<PartitionState>,
}

impl PartitionSnapshot {
    /// What a version chain held. A region that was added since had no chain: it gets what the hub had.
    fn replica(&self, chain: usize) -> &ReplicaSnapshot {
        self.replicas.get(chain).unwrap_or(&self.replicas[0])
    }
}

impl ContainerSnapshot {
    /// Views of the partitions that owned a part of `range`, as they were; of an empty range, the one at its start.
    pub fn views_over(&self, range: &EpkRange, read: ReadContext) -> Vec<PartitionView> {
        let over = self.partitions.iter().filter(|saved| saved.partition.owns_part_of(range));
        over.map(|saved| {
            let state = Arc::clone(&saved.replicas[0].state);
            PartitionView::pinned(Arc::clone(&saved.partition), read, state)
        })
        .collect()
    }

    /// The number of items in the snapshot.
    pub(crate) fn items(&self) -> u64 {
        self.partitions.iter().map(|saved| saved.replicas[0].head.len() as u64).sum()
    }
}

impl Container {
    /// Saves a snapshot. Cost grows with the partitions, not with the items.
    pub(crate) fn save(&self) -> Result<ContainerSnapshot, DiskError> {
        let layout = self.layout.lock();
        let save = |partition: &Arc<Partition>| {
            partition.wait_for_index();
            let mut guards = partition.close()?;
            let replicas = guards
                .iter_mut()
                .map(|guard| ReplicaSnapshot { head: guard.head(), state: guard.snapshot() });
            Ok(PartitionSnapshot { replicas: replicas.collect(), partition: Arc::clone(partition) })
        };
        let partitions = self.partitions.load().iter().map(save).collect::<Result<_, DiskError>>()?;
        Ok(ContainerSnapshot { partitions, next_range_id: layout.next_range_id() })
    }

    /// Fixes the container's layout until `saved` is restored. `exists` says whether the container is in the
    /// catalog now, so that the disk has its contents.
    pub(crate) fn lock_for_restore<'a>(
        &'a self,
        saved: &'a ContainerSnapshot,
        exists: bool,
    ) -> LockedContainer<'a> {
        let layout = self.layout.lock();
        let current = self.partitions.load_full();
        current.iter().for_each(|partition| partition.wait_for_index());
        LockedContainer { container: self, saved, exists, layout, current }
    }
}

/// A container whose layout is locked for a restore.
pub(crate) struct LockedContainer<'a> {
    container: &'a Container,
    saved: &'a ContainerSnapshot,
    exists: bool,
    layout: MutexGuard<'a, Layout>,
    current: Arc<Vec<Arc<Partition>>>,
}

/// A container under its write guards, about to be restored.
pub(crate) struct ContainerRestore<'a> {
    container: &'a Container,
    saved: &'a ContainerSnapshot,
    exists: bool,
    layout: &'a mut Layout,
    next_layout: Layout,
    current: &'a [Arc<Partition>],
    /// The write guards of each partition, by version chain.
    guards: Vec<Vec<WriteGuard<'a>>>,
    /// The contents of each saved partition, by version chain.
    contents: Vec<Vec<ReplicaContents>>,
    /// The partitions that replace the current ones; none where those stay.
    made: Option<Vec<Arc<Partition>>>,
}

impl<'a> LockedContainer<'a> {
    /// Takes every write guard and computes what replaces the present contents. Cost does not grow with the
    /// items.
    pub(crate) fn begin<'h>(&'h mut self) -> Result<ContainerRestore<'h>, DiskError>
    where
        'a: 'h,
    {
        let LockedContainer { container, saved, exists, layout, current } = self;
        let (container, saved): (&'h Container, &'h ContainerSnapshot) = (container, saved);
        let current: &'h [Arc<Partition>] = current;
        let guards: Vec<Vec<WriteGuard<'h>>> =
            current.iter().map(|partition| partition.close()).collect::<Result<_, DiskError>>()?;
        let newest = guards.iter().flatten().map(|guard| guard.state().lsn).max().unwrap_or_default();
        let versions = guards.iter().map(|guards| guards[0].head().progress().versions);
        let joined = versions.reduce(VersionVector::joined).unwrap_or_default();
        let chains = container.chain_count();
        let joined = joined_for(joined, container);
        let same_partitions = current.len() == saved.partitions.len()
            && current.iter().zip(&saved.partitions).all(|(now, then)| Arc::ptr_eq(now, &then.partition))
            // A container that was deleted before a region was added has no replica there.
            && saved.partitions.iter().all(|then| then.replicas.len() == chains);
        let is_persisted = container.context.disk.is_some();
        let mut contents = Vec::with_capacity(saved.partitions.len());
        for (at, then) in saved.partitions.iter().enumerate() {
            let versions =
                if same_partitions { guards[at][0].head().progress().versions } else { joined.clone() };
            // Changes that the disk has trimmed since cannot come back.
            let trimmed_to = |chain: usize| match (is_persisted, *exists) {
                (false, _) => Lsn(0),
                (true, false) => Lsn(u64::MAX),
                (true, true) if chain >= then.replicas.len() => Lsn(u64::MAX),
                (true, true) => {
                    let concerned = if same_partitions { &guards[at..=at] } else { &guards[..] };
                    let logs = concerned.iter().filter_map(|guards| guards.get(chain));
                    let logs = logs.map(|guard| &guard.state().log);
                    // Nor can changes that an earlier restore gave up: the disk deleted them then.
                    if logs.clone().any(|log| !log.contains_lsn(then.replica(chain).state.lsn)) {
                        return Lsn(u64::MAX);
                    }
                    logs.map(|log| log.trimmed_to()).max().unwrap_or_default()
                }
            };
            let replicas = (0..chains).map(|chain| {
                then.replica(chain).as_commit_after(newest, versions.clone(), trimmed_to(chain))
            });
            contents.push(replicas.collect());
        }
        let mut restore = ContainerRestore {
            next_layout: Layout::clone(layout),
            layout,
            container,
            saved,
            exists: *exists,
            current,
            guards,
            contents,
            made: None,
        };
        restore.plan_layout(same_partitions);
        Ok(restore)
    }
}

impl ContainerRestore<'_> {
    /// Builds partitions for the snapshot, unless the current ones stay, and records where their chains
    /// begin.
    fn plan_layout(&mut self, same_partitions: bool) {
        let origins = |contents: &[ReplicaContents]| -> Vec<ChainOrigin> {
            contents.iter().map(|contents| contents.state.origin()).collect()
        };
        if same_partitions {
            for (partition, contents) in self.current.iter().zip(&self.contents) {
                self.next_layout.set_origins(partition.identity.id, origins(contents));
            }
            return;
        }
        // The partitions have changed since: the saved ranges come back under new ids.
        let version = self.current.iter().map(|partition| partition.identity.token_version).max();
        let version = version.unwrap_or(-1) + 1;
        let mut made = Vec::with_capacity(self.contents.len());
        for (then, contents) in self.saved.partitions.iter().zip(&self.contents) {
            let range = then.partition.range.clone();
            let overlapping = self.current.iter().filter(|partition| partition.range.overlaps(&range));
            let mut parents: Vec<u32> = overlapping
                .flat_map(|partition| partition.parents.iter().copied().chain([partition.identity.id]))
                .collect();
            parents.sort_unstable();
            parents.dedup();
            let id = self.next_layout.new_id();
            self.next_layout.set_origins(id, origins(contents));
            let identity = PartitionIdentity::new(id, self.container.rid, version);
            let context = self.container.context.clone();
            let mut partition = Partition::new(identity, range, parents, contents[0].clone(), context);
            for (region, own) in (1..).zip(&contents[1..]) {
                partition.set_replica(RegionId(region), own.clone());
            }
            partition.inherit_conflicts(self.current);
            made.push(Arc::new(partition));
        }
        self.made = Some(made);
    }

    /// Adds the restore to the disk's batch. Cost grows with what was written since the snapshot; with all
    /// items where the partitions have changed since, because they are compared, or where the container had
    /// been deleted.
    pub(crate) fn put(&self, batch: &mut Batch) {
        let rid = self.container.rid;
        if self.exists {
            self.put_difference(batch);
        } else {
            batch.remove_contents(rid);
            for (chain, item) in self.contents.iter().flat_map(|contents| {
                (0..)
                    .zip(contents)
                    .flat_map(|(chain, contents)| contents.state.items().map(move |item| (chain, item)))
            }) {
                batch.put_item(rid, chain, item);
            }
        }
        let partitions = self.made.as_deref().unwrap_or(self.current);
        self.container.put_layout(batch, &self.next_layout, partitions);
        if self.made.is_some() || !self.exists {
            self.current.iter().for_each(|partition| batch.remove_replication(rid, partition.identity.id));
            partitions.iter().for_each(|partition| partition.put_replicas(batch));
        }
    }

    /// Adds the difference between the present contents and the snapshot.
    fn put_difference(&self, batch: &mut Batch) {
        let rid = self.container.rid;
        let chains = self.guards.first().map_or(0, |guards| guards.len());
        for chain in 0..chains {
            let number = chain as u8;
            for then in &self.saved.partitions {
                batch.remove_log_after(
                    then.partition.identity.chain_key(number),
                    then.replica(chain).state.lsn,
                );
            }
            batch.remove_log_from(ChainKey {
                container: rid,
                chain: number,
                partition: self.saved.next_range_id,
            });
            let before = self.guards.iter().map(|guards| guards[chain].state());
            let after = self.contents.iter().map(|contents| &contents[chain].state);
            if self.made.is_none() {
                for (before, after) in before.zip(after) {
                    let visit =
                        |ordinal, item: Option<&Arc<Item>>| put_item(batch, rid, number, ordinal, item);
                    each_difference(&before.items, &after.items, visit);
                }
            } else {
                let (before, after) = (items_of(before), items_of(after));
                each_difference(&before, &after, |ordinal, item| put_item(batch, rid, number, ordinal, item));
            }
        }
    }

    /// Publishes the snapshot. Readers that have begun see what was there before; those that begin
    /// afterwards, in any region, see the snapshot.
    pub(crate) fn finish(self) {
        let ContainerRestore {
            container,
            layout,
            next_layout,
            current,
            mut guards,
            contents,
            made,
            saved,
            ..
        } = self;
        if let Some(first) = saved.partitions.first() {
            container.set_schema(Arc::clone(&first.replicas[0].state.schema));
        }
        *layout = next_layout;
        match made {
            None => {
                for ((guards, partition), contents) in guards.iter_mut().zip(current).zip(contents) {
                    partition.replace(guards, contents);
                }
            }
            Some(made) => {
                container.partitions.store(Arc::new(made));
                guards.iter_mut().flatten().for_each(|guard| guard.mark_replaced());
            }
        }
    }
}

impl ReplicaSnapshot {
    /// The saved contents, as the commit that follows `lsn`, with a change log that begins after
    /// `trimmed_to`.
    fn as_commit_after(&self, lsn: Lsn, versions: VersionVector, trimmed_to: Lsn) -> ReplicaContents {
        let lsn = Lsn(lsn.max(self.state.lsn).0 + 1);
        let head = Head { lsn, versions, ..Head::clone(&self.head) };
        let mut state = PartitionState { lsn, ..PartitionState::clone(&self.state) };
        if trimmed_to >= lsn {
            state.log = ChangeLog::starting_after(lsn);
        } else {
            state.log.trim_to(trimmed_to);
            state.log.add_gap(self.state.lsn, lsn);
        }
        ReplicaContents { head, state }
    }
}

/// A version vector for all regions that the account has now.
fn joined_for(versions: VersionVector, container: &Container) -> VersionVector {
    match container.context.regions.current().is_multi_write() {
        true => versions.extended(container.chain_count()),
        false => versions,
    }
}

/// The items of several partitions, by ordinal.
fn items_of<'a>(states: impl Iterator<Item = &'a PartitionState>) -> OrdMap<Ordinal, Arc<Item>> {
    states.flat_map(|state| state.items()).map(|item| (item.ordinal, Arc::clone(item))).collect()
}

/// Calls `visit` with each item of `after` that differs from `before`. Subtrees that both share are skipped.
fn each_difference(
    before: &OrdMap<Ordinal, Arc<Item>>,
    after: &OrdMap<Ordinal, Arc<Item>>,
    mut visit: impl FnMut(Ordinal, Option<&Arc<Item>>),
) {
    for difference in before.diff(after) {
        match difference {
            DiffItem::Add(ordinal, item) | DiffItem::Update { new: (ordinal, item), .. } => {
                visit(*ordinal, Some(item));
            }
            DiffItem::Remove(ordinal, _) => visit(*ordinal, None),
        }
    }
}

/// Adds an item's new version, or its deletion.
fn put_item(batch: &mut Batch, rid: ContainerRid, chain: u8, ordinal: Ordinal, item: Option<&Arc<Item>>) {
    match item {
        Some(item) => batch.put_item(rid, chain, item),
        None => batch.remove_item(rid, chain, ordinal),
    }
}
