//! Splits and merges of a container's partitions: what is asked for, and whether it is possible.
//!
//! Both build new partitions beside the old ones and swap them in (`swap`). A reader of an old partition goes
//! on undisturbed; a writer finds that it was replaced and looks up the new owner. Cost grows with the items
//! of the partitions concerned, so both belong on a blocking thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use protocol::partition::{EffectivePartitionKey, EpkRange, split_point};
use thiserror::Error;

use crate::disk::{Batch, CatalogKey, ChainOrigin, Keyspace, StoredLayout, StoredPartition};
use crate::regions::{RegionId, Topology};
use crate::store::container::Container;
use crate::store::index::{self, KeyRange};
use crate::store::partition::{LSN_FIRST, Partition, PartitionIdentity};
use crate::store::repartition::swap::PartitionSwap;

/// Why partitions cannot be split, merged or failed over.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// No partition key range has this id.
    #[error("there is no partition key range '{0}'; `peri partition list` shows those there are")]
    UnknownRange(u32),
    /// The split point is not inside the range.
    #[error("the range '{id}' cannot be split at '{at}': it goes from '{min}' to '{max}'")]
    SplitOutsideRange {
        /// The id of the range.
        id: u32,
        /// The split point that was given.
        at: String,
        /// The lower end of the range.
        min: String,
        /// The upper end of the range.
        max: String,
    },
    /// The range holds a single partition key value.
    #[error("the range '{0}' holds a single partition key value and cannot be split")]
    Indivisible(u32),
    /// Fewer than two ranges were given to merge.
    #[error("merging takes two or more partition key ranges")]
    TooFew,
    /// The ranges to merge are not neighbours.
    #[error("the ranges {0} are not next to each other; only neighbours can be merged")]
    NotAdjacent(String),
    /// Replication to a region is paused. Its view of two merged histories would have no LSN of its own, so
    /// that sessions and feeds could not say what it misses.
    #[error(
        "replication to '{0}' is paused; ranges merge when every region has caught up, so resume it first"
    )]
    Paused(String),
    /// The new layout could not be persisted.
    #[error("{0}")]
    NotPersisted(String),
}

/// What splits and merges change; its lock serializes them.
#[derive(Clone, Debug)]
pub(in crate::store) struct Layout {
    next_range_id: u32,
    /// Where the version chains of each range begin that was made by a split, merge or restore.
    origins: BTreeMap<u32, Vec<ChainOrigin>>,
}

impl Layout {
    /// The layout that was stored on disk.
    pub(in crate::store) fn restored(stored: &StoredLayout) -> Layout {
        let origins = stored.partitions.iter().map(|stored| (stored.id, stored.origins.clone())).collect();
        Layout { next_range_id: stored.next_range_id, origins }
    }

    pub(in crate::store) fn after(partitions: usize) -> Layout {
        Layout { next_range_id: u32::try_from(partitions).unwrap_or(u32::MAX), origins: BTreeMap::new() }
    }

    /// The stored form of the layout and of `partitions`.
    pub(in crate::store) fn stored(
        &self,
        partitions: &[Arc<Partition>],
        next_ordinal: u64,
        topology: &Topology,
    ) -> StoredLayout {
        let stored = |partition: &Arc<Partition>| {
            let PartitionIdentity { id, token_version, .. } = partition.identity;
            let origins = self.known_origins(id);
            let (range, parents) = (partition.range.clone(), partition.parents.clone());
            let write_region = partition.write_region().map(|region| topology.region(region).name.clone());
            StoredPartition { id, token_version, range, parents, origins, write_region }
        };
        let partitions = partitions.iter().map(stored).collect();
        StoredLayout {
            next_range_id: self.next_range_id,
            next_ordinal,
            partitions,
            failover_count: topology.failover_count(),
        }
    }

    /// Where the version chains of a range begin that are known; the others begin where the first one does.
    pub(in crate::store) fn known_origins(&self, id: u32) -> Vec<ChainOrigin> {
        let first = ChainOrigin { lsn_at_start: LSN_FIRST, trimmed_to: LSN_FIRST };
        let known = self.origins.get(&id).filter(|origins| !origins.is_empty());
        known.cloned().unwrap_or_else(|| vec![first])
    }

    /// Records where the version chains of a range begin.
    pub(in crate::store) fn set_origins(&mut self, id: u32, origins: Vec<ChainOrigin>) {
        self.origins.insert(id, origins);
    }

    /// The id that the next range gets.
    pub(in crate::store) fn next_range_id(&self) -> u32 {
        self.next_range_id
    }

    pub(in crate::store) fn new_id(&mut self) -> u32 {
        self.next_range_id += 1;
        self.next_range_id - 1
    }
}

impl Container {
    /// The stored form of the container's partitions.
    pub(crate) fn stored_layout(&self) -> StoredLayout {
        let layout = self.layout.lock();
        self.stored_layout_of(&layout, &self.partitions.load())
    }

    /// The stored form of `partitions` in a layout.
    pub(in crate::store) fn stored_layout_of(
        &self,
        layout: &Layout,
        partitions: &[Arc<Partition>],
    ) -> StoredLayout {
        layout.stored(partitions, self.next_ordinal(), &self.context.regions.current())
    }

    /// Moves the writes of one range to a region of its own, which has seen all of them before it takes its
    /// first, or back to the account's write region.
    pub(crate) fn fail_over(&self, id: u32, region: Option<RegionId>) -> Result<(), LayoutError> {
        let layout = self.layout.lock();
        let partition = self.partition_by_id(id).ok_or(LayoutError::UnknownRange(id))?;
        let before = partition.write_region();
        partition.set_write_region(region);
        self.persist(&layout).inspect_err(|_| partition.set_write_region(before))
    }

    /// Moves the writes of every range back to the account's write region.
    pub(crate) fn clear_write_regions(&self) {
        let layout = self.layout.lock();
        let partitions = self.partitions.load();
        let away = partitions.iter().filter(|partition| partition.write_region().is_some());
        if away.map(|partition| partition.set_write_region(None)).count() > 0 {
            // If this is not persisted, a restart still knows: the stored failover count is older than the
            // account's.
            let _ = self.persist(&layout);
        }
    }

    fn persist(&self, layout: &Layout) -> Result<(), LayoutError> {
        let Some(disk) = &self.context.disk else { return Ok(()) };
        let mut batch = Batch::new(256);
        self.put_layout(&mut batch, layout, &self.partitions.load());
        disk.append(batch).map_err(|error| LayoutError::NotPersisted(error.to_string()))
    }

    /// Adds the layout of `partitions` to a batch.
    pub(in crate::store) fn put_layout(
        &self,
        batch: &mut Batch,
        layout: &Layout,
        partitions: &[Arc<Partition>],
    ) {
        let stored = self.stored_layout_of(layout, partitions);
        batch.put(Keyspace::Catalog, &CatalogKey::Layout(self.rid).to_bytes(), |to| stored.put(to));
    }

    /// The ordinal that the next item gets.
    pub(in crate::store) fn next_ordinal(&self) -> u64 {
        // Relaxed: a number, which orders nothing else.
        self.context.ordinals.load(Ordering::Relaxed)
    }

    /// Splits the range `id` in two, at `at` or in the middle. Returns the ids of the new ranges.
    pub(crate) fn split(
        &self,
        id: u32,
        at: Option<&EffectivePartitionKey>,
        uptime: Duration,
    ) -> Result<[u32; 2], LayoutError> {
        let mut layout = self.layout.lock();
        let (parent, at) = self.split_parent(id, at)?;
        let mut next = layout.clone();
        let ids = [next.new_id(), next.new_id()];
        let ranges = [
            EpkRange::new(parent.range.min.clone(), at.clone()),
            EpkRange::new(at, parent.range.max.clone()),
        ];
        let new = ids.into_iter().zip(ranges).collect();
        let token_version = parent.identity.token_version;
        let swap = PartitionSwap { old: vec![parent], new, token_version, uptime };
        *layout = self.swap_partitions(next, swap)?;
        Ok(ids)
    }

    /// The key at which to split the range `id` so that both sides hold about as many items; none where all
    /// of them have one partition key value. Cost grows with the items.
    pub(crate) fn middle_of(&self, id: u32) -> Option<EffectivePartitionKey> {
        let state = self.partition_by_id(id)?.latest_state();
        let ring = KeyRange::prefix(index::IndexSpace::EPK.to_bytes().to_vec());
        let places = || state.index.range(&ring).filter_map(|entry| Some(&state.item(entry.ordinal())?.epk));
        let first = places().next()?;
        let middle = places().nth(state.len() / 2)?;
        places().find(|place| *place >= middle && *place > first).cloned()
    }

    /// Merges neighbouring ranges into one. Returns the id of the new range.
    pub(crate) fn merge(&self, ids: &[u32], uptime: Duration) -> Result<u32, LayoutError> {
        let mut layout = self.layout.lock();
        let parents = self.neighbours(ids)?;
        let range = EpkRange::new(parents[0].range.min.clone(), parents[parents.len() - 1].range.max.clone());
        let mut next = layout.clone();
        let id = next.new_id();
        let version = parents.iter().map(|parent| parent.identity.token_version).max().unwrap_or(-1);
        // Two histories become one, so older session tokens no longer compare.
        let token_version = version + 1;
        let swap = PartitionSwap { old: parents, new: vec![(id, range)], token_version, uptime };
        *layout = self.swap_partitions(next, swap)?;
        Ok(id)
    }

    /// Checks whether a split is possible now.
    pub(crate) fn check_split(&self, id: u32, at: Option<&EffectivePartitionKey>) -> Result<(), LayoutError> {
        self.split_parent(id, at).map(|_| ())
    }

    /// Checks whether a merge is possible now.
    pub(crate) fn check_merge(&self, ids: &[u32]) -> Result<(), LayoutError> {
        self.neighbours(ids).map(|_| ())
    }

    /// The partition to split, and the key to split it at.
    fn split_parent(
        &self,
        id: u32,
        at: Option<&EffectivePartitionKey>,
    ) -> Result<(Arc<Partition>, EffectivePartitionKey), LayoutError> {
        let parent = self.partition_by_id(id).ok_or(LayoutError::UnknownRange(id))?;
        let at = match at {
            Some(at) => at.clone(),
            None => split_point(&self.schema().partition_key, &parent.range)
                .ok_or(LayoutError::Indivisible(id))?,
        };
        if at <= parent.range.min || at >= parent.range.max {
            let (min, max) = (parent.range.min.to_hex(), parent.range.max.to_hex());
            return Err(LayoutError::SplitOutsideRange { id, at: at.to_hex(), min, max });
        }
        Ok((parent, at))
    }

    /// The partitions to merge, in EPK order: at least two.
    fn neighbours(&self, ids: &[u32]) -> Result<Vec<Arc<Partition>>, LayoutError> {
        let mut parents = Vec::with_capacity(ids.len());
        for id in ids {
            parents.push(self.partition_by_id(*id).ok_or(LayoutError::UnknownRange(*id))?);
        }
        parents.sort_by(|a, b| a.range.min.cmp(&b.range.min));
        parents.dedup_by_key(|partition| partition.identity.id);
        if parents.len() < 2 {
            return Err(LayoutError::TooFew);
        }
        if parents.windows(2).any(|pair| pair[0].range.max != pair[1].range.min) {
            let named: Vec<String> = ids.iter().map(u32::to_string).collect();
            return Err(LayoutError::NotAdjacent(named.join(", ")));
        }
        self.check_caught_up()?;
        Ok(parents)
    }

    /// Fails while replication to some region is paused.
    pub(in crate::store) fn check_caught_up(&self) -> Result<(), LayoutError> {
        let topology = self.context.regions.current();
        match topology.regions().find(|(_, there)| there.paused_at.is_some()) {
            Some((_, region)) => Err(LayoutError::Paused(region.name.clone())),
            None => Ok(()),
        }
    }
}
