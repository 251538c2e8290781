//! Putting new partitions in the place of old ones: what a split and a merge have in common.
//!
//! First the new ones are drafted from what the old ones hold, and follow what is written meanwhile
//! (`drafts`). Then the old ones are closed: within their last turn the drafts become partitions, are written
//! down, and take over. Whatever fails before that leaves everything as it was.

use std::sync::Arc;
use std::time::Duration;

use protocol::partition::EpkRange;

use super::container::Container;
use super::drafts::{Draft, Drafts};
use super::layout::{Layout, LayoutError};
use super::line::Turn;
use super::partition::{Partition, PartitionIdentity};
use super::view::View;
use crate::disk::{Batch, DiskError};
use crate::regions::RegionId;

/// How often, and how long apart, whoever splits looks whether others still hold what it replaced.
const OTHERS_LOOKS_MAX: u32 = 50;
const OTHERS_LOOK_EVERY: Duration = Duration::from_millis(1);

/// What takes the place of what.
pub(super) struct Exchange {
    /// In the order of the ring.
    pub(super) old: Vec<Arc<Partition>>,
    /// The ids and ranges of the new ones; together the ranges of the old ones.
    pub(super) new: Vec<(u32, EpkRange)>,
    pub(super) token_version: i64,
    pub(super) uptime: Duration,
}

impl Container {
    /// Carries it out. Nobody else may change the layout meanwhile, whose ids have been given out. Says
    /// what it is then.
    pub(super) fn exchange(&self, layout: Layout, exchange: Exchange) -> Result<Layout, LayoutError> {
        let mut drafts = Drafts::of(&exchange, &self.surroundings.regions.current());
        let not_kept = |error: DiskError| LayoutError::NotPersisted(error.to_string());
        drafts.follow().map_err(not_kept)?;
        let mut turns = drafts.close().map_err(not_kept)?;
        if exchange.old.len() > 1 {
            // Looked at again within the turns: a region that is paused from now on has seen all of this.
            self.check_caught_up()?;
        }
        let parents = parents(&exchange.old);
        let mut next = layout;
        let finish = |draft: Draft| {
            let identity = PartitionIdentity::new(draft.id, self.rid, exchange.token_version);
            next.set_births(draft.id, draft.lines.iter().map(|line| line.state.birth()).collect());
            Arc::new(self.finished(draft, identity, &parents, &exchange.old))
        };
        let made: Vec<Arc<Partition>> = drafts.into_made().into_iter().map(finish).collect();
        let mut partitions = Vec::clone(&self.partitions.load());
        let first = partitions.iter().position(|partition| Arc::ptr_eq(partition, &exchange.old[0]));
        let first = first.unwrap_or(0);
        partitions.splice(first..first + exchange.old.len(), made.iter().cloned());
        // Within the turns: what the old ones committed comes before it, and nothing after.
        self.keep_layout(&next, &exchange.old, &made, &partitions)?;
        self.partitions.store(Arc::new(partitions));
        turns.iter_mut().flatten().for_each(Turn::retire);
        drop(turns);
        outlast_others(&exchange.old);
        Ok(next)
    }

    /// What becomes of a draft that has caught up, and how its lines begin.
    fn finished(
        &self,
        draft: Draft,
        identity: PartitionIdentity,
        parents: &[u32],
        old: &[Arc<Partition>],
    ) -> Partition {
        let Draft { range, lines, paused, .. } = draft;
        let surroundings = self.surroundings.clone();
        let mut lines = (0..).map(RegionId).zip(lines);
        let (_, contents) = lines.next().expect("a partition has a line");
        let mut partition = Partition::new(identity, range, parents.to_vec(), contents, surroundings);
        for (region, seen, since) in paused {
            partition.set_view(region, View::of(seen, since));
        }
        partition.inherit_home(old);
        partition.inherit_conflicts(old);
        lines.for_each(|(region, own)| partition.set_copy(region, own));
        partition
    }

    /// Writes down that `partitions` are what there is, where anything is written down.
    fn keep_layout(
        &self,
        layout: &Layout,
        old: &[Arc<Partition>],
        made: &[Arc<Partition>],
        partitions: &[Arc<Partition>],
    ) -> Result<(), LayoutError> {
        let Some(disk) = &self.surroundings.disk else { return Ok(()) };
        let mut batch = Batch::new(64 * partitions.len());
        self.put_layout(&mut batch, layout, partitions);
        old.iter().for_each(|partition| batch.remove_mesh(self.rid, partition.identity.id));
        made.iter().for_each(|partition| partition.put_mesh(&mut batch));
        disk.append(batch).map_err(|error| LayoutError::NotPersisted(error.to_string()))
    }
}

/// Waits until nobody else holds what was replaced, for a moment. What it held takes a while to free, and a
/// writer that was the last to let go of it would have to.
fn outlast_others(old: &[Arc<Partition>]) {
    for _ in 0..OTHERS_LOOKS_MAX {
        if old.iter().all(|partition| Arc::strong_count(partition) == 1) {
            return;
        }
        std::thread::sleep(OTHERS_LOOK_EVERY);
    }
}

/// Everything the old ones descend from, and they themselves.
fn parents(old: &[Arc<Partition>]) -> Vec<u32> {
    let mut parents: Vec<u32> = old.iter().flat_map(|partition| partition.parents.clone()).collect();
    parents.sort_unstable();
    parents.dedup();
    parents.extend(old.iter().map(|partition| partition.identity.id));
    parents
}
