//! Putting new partitions in the place of old ones: what a split and a merge have in common.
//!
//! First the new ones are drafted from what the old ones hold, while writes go on. Then the old ones
//! are closed: within their last turn the drafts catch up, become partitions, are written down, and
//! take over. Whatever fails before that leaves everything as it was.

use std::sync::Arc;
use std::time::Duration;

use protocol::partition::EpkRange;

use super::container::Container;
use super::contents::Contents;
use super::layout::{Layout, LayoutError};
use super::line::Turn;
use super::partition::{Identity, Partition};
use super::reach::Progress;
use super::state::State;
use super::view::View;
use crate::disk::{self, Batch, Birth, CatalogKey};
use crate::regions::RegionId;

/// What takes the place of what.
pub(super) struct Exchange {
    /// In the order of the ring.
    pub(super) old: Vec<Arc<Partition>>,
    /// The ids and ranges of the new ones; together the ranges of the old ones.
    pub(super) new: Vec<(u32, EpkRange)>,
    pub(super) token_version: i64,
    pub(super) uptime: Duration,
}

/// A partition to be, as far as it can be made while writes go on.
struct Draft {
    id: u32,
    range: EpkRange,
    contents: Contents,
    /// What the regions see that nothing reaches.
    paused: Vec<(RegionId, Contents)>,
}

/// The writers of each old partition, by region.
type Turns<'a> = Vec<Vec<Turn<'a>>>;

impl Container {
    /// Carries it out. Nobody else may change the layout meanwhile, whose ids have been given out. Says
    /// what it is then.
    pub(super) fn exchange(&self, layout: Layout, exchange: Exchange) -> Result<Layout, LayoutError> {
        let before: Vec<Arc<State>> = exchange.old.iter().map(|old| old.newest_snapshot()).collect();
        let mut drafts = self.drafts(&exchange, &before);
        // In the order of the ring, as everybody who takes more than one.
        let turns: Result<Turns<'_>, _> = exchange.old.iter().map(|partition| partition.close()).collect();
        let mut turns = turns.map_err(|error| LayoutError::NotKept(error.to_string()))?;
        catch_up(&mut drafts, &before, &turns);
        let parents = parents(&exchange.old);
        let mut next = layout;
        let finish = |draft: Draft| {
            let identity = Identity::new(draft.id, self.rid, exchange.token_version);
            let (partition, births) = self.finished(draft, identity, &parents, &exchange.old, &turns);
            next.set_births(partition.identity.id, births);
            Arc::new(partition)
        };
        let made: Vec<Arc<Partition>> = drafts.into_iter().map(finish).collect();
        let mut partitions = Vec::clone(&self.partitions.load());
        let first = partitions.iter().position(|partition| Arc::ptr_eq(partition, &exchange.old[0]));
        let first = first.unwrap_or(0);
        partitions.splice(first..first + exchange.old.len(), made.iter().cloned());
        // Within the turns: what the old ones committed comes before it, and nothing after.
        self.keep_layout(&next, &exchange.old, &made, &partitions)?;
        self.partitions.store(Arc::new(partitions));
        turns.iter_mut().flatten().for_each(Turn::retire);
        Ok(next)
    }

    /// What the new ones hold, if nothing more is written.
    fn drafts(&self, exchange: &Exchange, before: &[Arc<State>]) -> Vec<Draft> {
        let Exchange { old, new, uptime, .. } = exchange;
        let topology = self.surroundings.regions.current();
        let paused = topology.regions().filter_map(|(region, there)| {
            let seen_until = there.paused_at?.min(*uptime);
            let seen: Option<Vec<_>> =
                old.iter().map(|partition| partition.seen(region, seen_until)).collect();
            Some((region, seen?))
        });
        let paused: Vec<(RegionId, Vec<Arc<State>>)> = paused.collect();
        let draft = |(id, range): &(u32, EpkRange)| Draft {
            id: *id,
            contents: Contents::of(before, range),
            paused: paused.iter().map(|(region, seen)| (*region, Contents::of(seen, range))).collect(),
            range: range.clone(),
        };
        new.iter().map(draft).collect()
    }

    /// What becomes of a draft that has caught up, and how its lines begin.
    fn finished(
        &self,
        draft: Draft,
        identity: Identity,
        parents: &[u32],
        old: &[Arc<Partition>],
        turns: &Turns<'_>,
    ) -> (Partition, Vec<Birth>) {
        let Draft { range, contents, paused, .. } = draft;
        let mut births = vec![contents.state.birth()];
        let surroundings = self.surroundings.clone();
        let mut partition = Partition::new(identity, range, parents.to_vec(), contents, surroundings);
        for (region, seen) in paused {
            partition.set_view(region, View::of(seen));
        }
        partition.inherit_conflicts(old);
        // All regions that write have the same by now, each in the order in which it came to them: that
        // is what their feeds go on by.
        for region in 1..turns[0].len() {
            let states: Vec<Arc<State>> = turns.iter().map(|turns| owned(turns[region].state())).collect();
            let mut own = Contents::of(&states, &partition.range);
            own.head.progress = partition.newest().reach().progress;
            births.push(own.state.birth());
            partition.set_copy(RegionId(region as u8), own);
        }
        (partition, births)
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
        let key = CatalogKey::Layout(self.rid).to_bytes();
        let kept = layout.kept(partitions, self.next_ordinal());
        batch.put(disk::Space::Catalog, &key, |to| kept.put(to));
        old.iter().for_each(|partition| batch.remove_mesh(self.rid, partition.identity.id));
        made.iter().for_each(|partition| partition.put_mesh(&mut batch));
        disk.append(batch).map_err(|error| LayoutError::NotKept(error.to_string()))
    }
}

/// Brings drafts made from `before` up to what was committed until the old ones were closed.
fn catch_up(drafts: &mut [Draft], before: &[Arc<State>], turns: &Turns<'_>) {
    let newest: Vec<&State> = turns.iter().map(|turns| turns[0].state()).collect();
    let pairs = || before.iter().zip(&newest);
    let unchanged = pairs().all(|(before, newest)| before.lsn == newest.lsn);
    let known = pairs().all(|(before, newest)| newest.log.reaches(before.lsn));
    // Everything has arrived everywhere, so the partition furthest ahead says how far all are.
    let progress = turns.iter().map(|turns| turns[0].head().reach().progress).reduce(Progress::joined);
    let progress = progress.unwrap_or_default();
    for Draft { range, contents, .. } in drafts {
        match newest.as_slice() {
            [newest] if known => contents.follow(&newest.log, range, newest.lsn),
            _ if unchanged => {}
            // Several histories have no common order to catch up in.
            several => {
                let several: Vec<Arc<State>> = several.iter().map(|state| owned(state)).collect();
                *contents = Contents::of(&several, range);
            }
        }
        contents.head.progress = progress.clone();
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

fn owned(state: &State) -> Arc<State> {
    Arc::new(state.clone())
}
