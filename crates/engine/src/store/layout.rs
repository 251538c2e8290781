//! How a container's partitions split and merge: what is asked for, and whether it is possible.
//!
//! Both make new partitions beside the old ones and swap (`exchange`). Whoever still holds the old partition reads on in peace;
//! whoever wants to write to it is told that it has retired and asks for the owner again. Costs grow
//! with the items of the partitions concerned, so both belong on a thread that may take its time.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use protocol::partition::{EffectivePartitionKey, EpkRange, split_point};
use thiserror::Error;

use super::container::Container;
use super::exchange::Exchange;
use super::index::{self, KeyRange};
use super::partition::{LSN_FIRST, Partition, PartitionIdentity};
use crate::disk::{Batch, Birth, CatalogKey, KeptLayout, KeptPartition, Space};
use crate::regions::{RegionId, Topology};

/// Why partitions stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// No such partition.
    #[error("there is no partition key range '{0}'; `peri partition list` shows those there are")]
    UnknownRange(u32),
    /// A split that would leave one side empty.
    #[error("the range '{id}' cannot be split at '{at}': it goes from '{min}' to '{max}'")]
    SplitOutsideRange {
        /// Which range.
        id: u32,
        /// Where.
        at: String,
        /// Where it begins.
        min: String,
        /// Where it ends.
        max: String,
    },
    /// A range of one value.
    #[error("the range '{0}' holds a single partition key value and cannot be split")]
    Indivisible(u32),
    /// Fewer than two ranges to merge.
    #[error("merging takes two or more partition key ranges")]
    TooFew,
    /// Ranges with others between them.
    #[error("the ranges {0} are not next to each other; only neighbours can be merged")]
    NotAdjacent(String),
    /// A region that has not seen all of what is to be merged. Its view of two histories has no LSN of
    /// its own, so that sessions and feeds could not tell what it misses.
    #[error(
        "replication to '{0}' is paused; ranges merge when every region has caught up, so resume it first"
    )]
    Paused(String),
    /// What came of it could not be written down.
    #[error("{0}")]
    NotPersisted(String),
}

/// What splits and merges take turns with.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    next_range_id: u32,
    /// How the lines of each range began that was made of others.
    births: BTreeMap<u32, Vec<Birth>>,
}

impl Layout {
    /// The layout that was kept.
    pub(super) fn restored(kept: &KeptLayout) -> Layout {
        let births = kept.partitions.iter().map(|kept| (kept.id, kept.births.clone())).collect();
        Layout { next_range_id: kept.next_range_id, births }
    }

    pub(super) fn after(partitions: usize) -> Layout {
        Layout { next_range_id: u32::try_from(partitions).unwrap_or(u32::MAX), births: BTreeMap::new() }
    }

    /// What a disk keeps of it, and of `partitions`.
    pub(super) fn kept(
        &self,
        partitions: &[Arc<Partition>],
        next_ordinal: u64,
        topology: &Topology,
    ) -> KeptLayout {
        let first = Birth { born: LSN_FIRST, forgotten: LSN_FIRST };
        let kept = |partition: &Arc<Partition>| {
            let PartitionIdentity { id, token_version, .. } = partition.identity;
            let births = self.births.get(&id).cloned().unwrap_or_else(|| vec![first]);
            let (range, parents) = (partition.range.clone(), partition.parents.clone());
            let home = partition.write_region().map(|region| topology.region(region).name.clone());
            KeptPartition { id, token_version, range, parents, births, home }
        };
        let partitions = partitions.iter().map(kept).collect();
        KeptLayout {
            next_range_id: self.next_range_id,
            next_ordinal,
            partitions,
            moves: topology.failover_count(),
        }
    }

    /// Notes how the lines of a range begin.
    pub(super) fn set_births(&mut self, id: u32, births: Vec<Birth>) {
        self.births.insert(id, births);
    }

    /// The id the next range gets.
    pub(super) fn next_range_id(&self) -> u32 {
        self.next_range_id
    }

    pub(super) fn new_id(&mut self) -> u32 {
        self.next_range_id += 1;
        self.next_range_id - 1
    }
}

impl Container {
    /// What a disk keeps of its partitions.
    pub(crate) fn kept_layout(&self) -> KeptLayout {
        let layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        self.kept_as(&layout, &self.partitions.load())
    }

    /// The same of `partitions`, in a layout.
    pub(super) fn kept_as(&self, layout: &Layout, partitions: &[Arc<Partition>]) -> KeptLayout {
        layout.kept(partitions, self.next_ordinal(), &self.surroundings.regions.current())
    }

    /// Moves the writes of one range to a region of its own, which has seen all of them before it takes its
    /// first, or back to where the account writes.
    pub(crate) fn fail_over(&self, id: u32, region: Option<RegionId>) -> Result<(), LayoutError> {
        let layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let partition = self.partition_numbered(id).ok_or(LayoutError::UnknownRange(id))?;
        let before = partition.write_region();
        partition.move_to(region);
        self.keep(&layout).inspect_err(|_| partition.move_to(before))
    }

    /// Lets every range be written where the account is.
    pub(crate) fn bring_home(&self) {
        let layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let partitions = self.partitions.load();
        let away = partitions.iter().filter(|partition| partition.write_region().is_some());
        if away.map(|partition| partition.move_to(None)).count() > 0 {
            // What is not written down is known all the same: the account has moved since.
            let _ = self.keep(&layout);
        }
    }

    fn keep(&self, layout: &Layout) -> Result<(), LayoutError> {
        let Some(disk) = &self.surroundings.disk else { return Ok(()) };
        let mut batch = Batch::new(256);
        self.put_layout(&mut batch, layout, &self.partitions.load());
        disk.append(batch).map_err(|error| LayoutError::NotPersisted(error.to_string()))
    }

    /// Adds how `partitions` are laid out.
    pub(super) fn put_layout(&self, batch: &mut Batch, layout: &Layout, partitions: &[Arc<Partition>]) {
        let kept = self.kept_as(layout, partitions);
        batch.put(Space::Catalog, &CatalogKey::Layout(self.rid).to_bytes(), |to| kept.put(to));
    }

    /// The ordinal the next item gets.
    pub(super) fn next_ordinal(&self) -> u64 {
        self.surroundings.ordinals.load(Ordering::Relaxed)
    }

    /// Splits the range `id` in two, at `at` or in the middle. Says which ranges came of it.
    pub(crate) fn split(
        &self,
        id: u32,
        at: Option<&EffectivePartitionKey>,
        uptime: Duration,
    ) -> Result<[u32; 2], LayoutError> {
        let mut layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let (parent, at) = self.divided(id, at)?;
        let mut next = layout.clone();
        let ids = [next.new_id(), next.new_id()];
        let ranges = [
            EpkRange::new(parent.range.min.clone(), at.clone()),
            EpkRange::new(at, parent.range.max.clone()),
        ];
        let new = ids.into_iter().zip(ranges).collect();
        let token_version = parent.identity.token_version;
        let exchange = Exchange { old: vec![parent], new, token_version, uptime };
        *layout = self.exchange(next, exchange)?;
        Ok(ids)
    }

    /// Where to split the range `id` so that both sides hold about as many items; none where all of them
    /// have one partition key value. Cost grows with the items.
    pub(crate) fn middle_of(&self, id: u32) -> Option<EffectivePartitionKey> {
        let state = self.partition_numbered(id)?.latest_state();
        let ring = KeyRange::prefix(index::IndexSpace::EPK.to_bytes().to_vec());
        let places = || state.index.range(&ring).filter_map(|entry| Some(&state.item(entry.ordinal())?.epk));
        let first = places().next()?;
        let middle = places().nth(state.len() / 2)?;
        places().find(|place| *place >= middle && *place > first).cloned()
    }

    /// Merges neighbouring ranges into one. Says which range came of it.
    pub(crate) fn merge(&self, ids: &[u32], uptime: Duration) -> Result<u32, LayoutError> {
        let mut layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let parents = self.neighbours(ids)?;
        let range = EpkRange::new(parents[0].range.min.clone(), parents[parents.len() - 1].range.max.clone());
        let mut next = layout.clone();
        let id = next.new_id();
        let version = parents.iter().map(|parent| parent.identity.token_version).max().unwrap_or(-1);
        // Two histories became one: tokens of before no longer compare.
        let token_version = version + 1;
        let exchange = Exchange { old: parents, new: vec![(id, range)], token_version, uptime };
        *layout = self.exchange(next, exchange)?;
        Ok(id)
    }

    /// Whether a split would do as asked, as things are.
    pub(crate) fn check_split(&self, id: u32, at: Option<&EffectivePartitionKey>) -> Result<(), LayoutError> {
        self.divided(id, at).map(|_| ())
    }

    /// Whether a merge would do as asked, as things are.
    pub(crate) fn check_merge(&self, ids: &[u32]) -> Result<(), LayoutError> {
        self.neighbours(ids).map(|_| ())
    }

    /// The range to split, and where.
    fn divided(
        &self,
        id: u32,
        at: Option<&EffectivePartitionKey>,
    ) -> Result<(Arc<Partition>, EffectivePartitionKey), LayoutError> {
        let parent = self.partition_numbered(id).ok_or(LayoutError::UnknownRange(id))?;
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

    /// The ranges to merge, in the order of the ring: two at least.
    fn neighbours(&self, ids: &[u32]) -> Result<Vec<Arc<Partition>>, LayoutError> {
        let mut parents = Vec::with_capacity(ids.len());
        for id in ids {
            parents.push(self.partition_numbered(*id).ok_or(LayoutError::UnknownRange(*id))?);
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

    /// Refuses while nothing reaches a region.
    pub(super) fn check_caught_up(&self) -> Result<(), LayoutError> {
        let topology = self.surroundings.regions.current();
        match topology.regions().find(|(_, there)| there.paused_at.is_some()) {
            Some((_, region)) => Err(LayoutError::Paused(region.name.clone())),
            None => Ok(()),
        }
    }
}
