//! Putting new partitions in the place of old ones: what a split and a merge have in common.
//!
//! First the new ones are drafted from what the old ones hold, and follow what is written meanwhile, while
//! writes go on. Once little is left the old ones are closed: within their last turn the drafts catch up,
//! become partitions, are written down, and take over. Whatever fails before that leaves everything as it
//! was.

use std::ops::Deref;
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
use crate::disk::{self, Batch, CatalogKey};
use crate::regions::RegionId;

/// Commits that may be left to follow when writers have to wait for it.
const LEFT_FEW: u64 = 64;

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
    /// One for each line: one, or one per region where all regions write. Those have the same once
    /// everything has arrived, each in the order in which it came to them: that is what feeds go on by.
    lines: Vec<Contents>,
    /// What the regions see that nothing reaches.
    paused: Vec<(RegionId, Contents, Option<Duration>)>,
}

/// The writers of each old partition, by region.
type Turns<'a> = Vec<Vec<Turn<'a>>>;

impl Container {
    /// Carries it out. Nobody else may change the layout meanwhile, whose ids have been given out. Says
    /// what it is then.
    pub(super) fn exchange(&self, layout: Layout, exchange: Exchange) -> Result<Layout, LayoutError> {
        let newest = || -> Vec<Vec<Arc<State>>> {
            exchange.old.iter().map(|partition| partition.newest_of_lines()).collect()
        };
        let mut before = newest();
        let mut drafts = self.drafts(&exchange, &before);
        let mut left_last = u64::MAX;
        loop {
            let now = newest();
            let left = commits_between(&before, &now);
            // Each round leaves what is written during it: less and less, or writers are as fast as this.
            if left <= LEFT_FEW || left > left_last / 2 {
                break;
            }
            follow(&mut drafts, &before, &now);
            (before, left_last) = (now, left);
        }
        // In the order of the ring, as everybody who takes more than one.
        let turns: Result<Turns<'_>, _> = exchange.old.iter().map(|partition| partition.close()).collect();
        let mut turns = turns.map_err(|error| LayoutError::NotKept(error.to_string()))?;
        if exchange.old.len() > 1 {
            // Looked at again within the turns: a region that is paused from now on has seen all of this.
            self.check_caught_up()?;
        }
        catch_up(&mut drafts, &before, &turns);
        let parents = parents(&exchange.old);
        let mut next = layout;
        let finish = |draft: Draft| {
            let identity = Identity::new(draft.id, self.rid, exchange.token_version);
            next.set_births(draft.id, draft.lines.iter().map(|line| line.state.birth()).collect());
            Arc::new(self.finished(draft, identity, &parents, &exchange.old))
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
    fn drafts(&self, exchange: &Exchange, before: &[Vec<Arc<State>>]) -> Vec<Draft> {
        let Exchange { old, new, uptime, .. } = exchange;
        let topology = self.surroundings.regions.current();
        // Ranges merge when every region has seen all of them.
        let paused = topology.regions().filter(|_| old.len() == 1).filter_map(|(region, there)| {
            let seen_until = there.paused_at?.min(*uptime);
            let seen = old[0].seen(region, seen_until)?;
            Some((region, [seen], old[0].behind_since(region, seen_until)))
        });
        let paused: Vec<_> = paused.collect();
        let draft = |(id, range): &(u32, EpkRange)| Draft {
            id: *id,
            lines: (0..before[0].len()).map(|line| Contents::of(&line_of(before, line), range)).collect(),
            paused: paused
                .iter()
                .map(|(region, seen, since)| (*region, Contents::of(seen, range), *since))
                .collect(),
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
        let key = CatalogKey::Layout(self.rid).to_bytes();
        let kept = layout.kept(partitions, self.next_ordinal());
        batch.put(disk::Space::Catalog, &key, |to| kept.put(to));
        old.iter().for_each(|partition| batch.remove_mesh(self.rid, partition.identity.id));
        made.iter().for_each(|partition| partition.put_mesh(&mut batch));
        disk.append(batch).map_err(|error| LayoutError::NotKept(error.to_string()))
    }
}

/// How many commits two states of the same partitions are apart, on the line where that is most.
fn commits_between(before: &[Vec<Arc<State>>], now: &[Vec<Arc<State>>]) -> u64 {
    let lines = before.iter().flatten().zip(now.iter().flatten());
    lines.map(|(before, now)| now.lsn.0.saturating_sub(before.lsn.0)).max().unwrap_or(0)
}

/// Brings drafts made from `before` up to what was committed until the old ones were closed. Writers wait
/// meanwhile.
fn catch_up(drafts: &mut [Draft], before: &[Vec<Arc<State>>], turns: &Turns<'_>) {
    let now: Vec<Vec<&State>> = turns.iter().map(|turns| turns.iter().map(Turn::state).collect()).collect();
    follow(drafts, before, &now);
    // Everything has arrived everywhere, so the partition furthest ahead says how far all are.
    let progress = turns.iter().map(|turns| turns[0].head().reach().progress).reduce(Progress::joined);
    let progress = progress.unwrap_or_default();
    for contents in drafts.iter_mut().flat_map(|draft| &mut draft.lines) {
        contents.head.progress = progress.clone();
    }
}

/// Brings drafts made from `before` up to `now`. The cost is that of what was committed in between, unless
/// that is no longer known.
fn follow<S: Deref<Target = State>>(drafts: &mut [Draft], before: &[Vec<Arc<State>>], now: &[Vec<S>]) {
    for line in 0..now[0].len() {
        let before = line_of(before, line);
        let newest: Vec<&State> = now.iter().map(|lines| &*lines[line]).collect();
        let pairs = || before.iter().zip(newest.iter().copied());
        let unchanged = pairs().all(|(before, newest)| before.lsn == newest.lsn);
        let known = pairs().all(|(before, newest)| newest.log.reaches(before.lsn));
        for Draft { range, lines, .. } in drafts.iter_mut() {
            let contents = &mut lines[line];
            match newest.as_slice() {
                _ if unchanged => {}
                [newest] if known => contents.follow(&newest.log, range, newest.lsn),
                _ if known => {
                    contents.follow_each(pairs().map(|(before, newest)| (before.lsn, newest)), range)
                }
                _ => {
                    let newest: Vec<Arc<State>> =
                        newest.iter().map(|state| Arc::new(State::clone(state))).collect();
                    *contents = Contents::of(&newest, range);
                }
            }
        }
    }
}

/// One line of several partitions.
fn line_of(partitions: &[Vec<Arc<State>>], line: usize) -> Vec<Arc<State>> {
    partitions.iter().map(|lines| Arc::clone(&lines[line])).collect()
}

/// Everything the old ones descend from, and they themselves.
fn parents(old: &[Arc<Partition>]) -> Vec<u32> {
    let mut parents: Vec<u32> = old.iter().flat_map(|partition| partition.parents.clone()).collect();
    parents.sort_unstable();
    parents.dedup();
    parents.extend(old.iter().map(|partition| partition.identity.id));
    parents
}
