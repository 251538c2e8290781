//! A container as it was: kept for as long as somebody wants it back.
//!
//! Saving takes each partition's snapshot, which costs nothing however much it holds; what is written
//! afterwards is written beside it. LSNs only go forward: a restored container continues after the LSN
//! it had, so that no session token and no entity tag ever means two things.
//!
//! Restoring is in steps, because several containers are restored as one: `hold` keeps their ranges as
//! they are, `begin` takes every writer's turn and works out what comes in the place of what is there,
//! `put` says what a disk has to know of it, and `finish` shows it. Until then nothing has changed.

use std::sync::{Arc, MutexGuard, PoisonError};

use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use protocol::lsn::Lsn;
use protocol::partition::EpkRange;
use protocol::resource_id::ContainerRid;

use super::container::Container;
use super::contents::Contents;
use super::head::Head;
use super::layout::Layout;
use super::line::Turn;
use super::log::Log;
use super::partition::{Partition, PartitionIdentity};
use super::reach::VersionVector;
use super::replica::PartitionView;
use super::state::PartitionState;
use crate::disk::{Batch, Birth, DiskError, LineKey};
use crate::items::{Item, Ordinal};
use crate::regions::{ReadContext, RegionId};

/// The partitions of a container at one moment.
#[derive(Clone)]
pub struct ContainerSnapshot {
    partitions: Vec<SavedPartition>,
    /// Ranges that came later have at least this id.
    next_range_id: u32,
}

#[derive(Clone)]
struct SavedPartition {
    partition: Arc<Partition>,
    /// One for each line, the deciding one first.
    copies: Vec<SavedCopy>,
}

#[derive(Clone)]
struct SavedCopy {
    head: Arc<Head>,
    state: Arc<PartitionState>,
}

impl ContainerSnapshot {
    /// The partitions that own a part of `range`, as they were.
    pub fn views_over(&self, range: &EpkRange, vantage: ReadContext) -> Vec<PartitionView> {
        let over = self.partitions.iter().filter(|saved| saved.partition.range.overlaps(range));
        over.map(|saved| {
            let state = Arc::clone(&saved.copies[0].state);
            PartitionView::pinned(Arc::clone(&saved.partition), vantage, state)
        })
        .collect()
    }

    /// How many items it holds.
    pub(crate) fn items(&self) -> u64 {
        self.partitions.iter().map(|saved| saved.copies[0].head.len() as u64).sum()
    }
}

impl Container {
    /// Keeps everything as it is now. Costs the same whatever it holds; grows with the partitions.
    pub(crate) fn save(&self) -> Result<ContainerSnapshot, DiskError> {
        let layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let save = |partition: &Arc<Partition>| {
            partition.wait_for_index();
            let mut turns = partition.close()?;
            let copies = turns.iter_mut().map(|turn| SavedCopy { head: turn.head(), state: turn.snapshot() });
            Ok(SavedPartition { copies: copies.collect(), partition: Arc::clone(partition) })
        };
        let partitions = self.partitions.load().iter().map(save).collect::<Result<_, DiskError>>()?;
        Ok(ContainerSnapshot { partitions, next_range_id: layout.next_range_id() })
    }

    /// Keeps its ranges as they are until `saved` is restored. `exists` says whether the container is one
    /// of the account's now, so that a disk has what is in it.
    pub(crate) fn hold<'a>(&'a self, saved: &'a ContainerSnapshot, exists: bool) -> Held<'a> {
        let layout = self.layout.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.partitions.load_full();
        current.iter().for_each(|partition| partition.wait_for_index());
        Held { container: self, saved, exists, layout, current }
    }
}

/// A container whose ranges stay as they are.
pub(crate) struct Held<'a> {
    container: &'a Container,
    saved: &'a ContainerSnapshot,
    exists: bool,
    layout: MutexGuard<'a, Layout>,
    current: Arc<Vec<Arc<Partition>>>,
}

/// A container that is about to be as it was.
pub(crate) struct Restoring<'a> {
    container: &'a Container,
    saved: &'a ContainerSnapshot,
    exists: bool,
    layout: &'a mut Layout,
    next_layout: Layout,
    current: &'a [Arc<Partition>],
    /// Of each partition, of each of its lines.
    turns: Vec<Vec<Turn<'a>>>,
    /// What each saved partition holds, in each of its lines.
    contents: Vec<Vec<Contents>>,
    /// The partitions that come in the place of the current ones; none where those stay.
    made: Option<Vec<Arc<Partition>>>,
}

impl<'a> Held<'a> {
    /// Takes every writer's turn, and works out what comes in the place of what is there. Costs the same
    /// whatever it holds.
    pub(crate) fn begin<'h>(&'h mut self) -> Result<Restoring<'h>, DiskError>
    where
        'a: 'h,
    {
        let Held { container, saved, exists, layout, current } = self;
        let (container, saved): (&'h Container, &'h ContainerSnapshot) = (container, saved);
        let current: &'h [Arc<Partition>] = current;
        let turns: Vec<Vec<Turn<'h>>> =
            current.iter().map(|partition| partition.close()).collect::<Result<_, DiskError>>()?;
        let newest = turns.iter().flatten().map(|turn| turn.state().lsn).max().unwrap_or_default();
        let progress = turns.iter().map(|turns| turns[0].head().progress().versions);
        let joined = progress.reduce(VersionVector::joined).unwrap_or_default();
        let stays = current.len() == saved.partitions.len()
            && current.iter().zip(&saved.partitions).all(|(now, then)| Arc::ptr_eq(now, &then.partition));
        let is_kept = container.surroundings.disk.is_some();
        let mut contents = Vec::with_capacity(saved.partitions.len());
        for (at, then) in saved.partitions.iter().enumerate() {
            let progress = if stays { turns[at][0].head().progress().versions } else { joined.clone() };
            // What a disk has forgotten since cannot come back.
            let forgotten = |line: usize| match (is_kept, *exists) {
                (false, _) => Lsn(0),
                (true, false) => Lsn(u64::MAX),
                (true, true) => {
                    let concerned = if stays { &turns[at..=at] } else { &turns[..] };
                    let logs = concerned.iter().filter_map(|turns| turns.get(line));
                    let logs = logs.map(|turn| &turn.state().log);
                    // Nor can what was given up when something older was restored: a disk lost it then.
                    if logs.clone().any(|log| !log.holds(then.copies[line].state.lsn)) {
                        return Lsn(u64::MAX);
                    }
                    logs.map(|log| log.forgotten()).max().unwrap_or_default()
                }
            };
            let copies = then.copies.iter().enumerate();
            let copies = copies.map(|(line, copy)| copy.after(newest, progress.clone(), forgotten(line)));
            contents.push(copies.collect());
        }
        let mut restoring = Restoring {
            next_layout: Layout::clone(layout),
            layout,
            container,
            saved,
            exists: *exists,
            current,
            turns,
            contents,
            made: None,
        };
        restoring.lay_out(stays);
        Ok(restoring)
    }
}

impl Restoring<'_> {
    /// Makes partitions for what was saved, unless the current ones stay, and notes how they begin.
    fn lay_out(&mut self, stays: bool) {
        let births = |contents: &[Contents]| -> Vec<Birth> {
            contents.iter().map(|contents| contents.state.birth()).collect()
        };
        if stays {
            for (partition, contents) in self.current.iter().zip(&self.contents) {
                self.next_layout.set_births(partition.identity.id, births(contents));
            }
            return;
        }
        // The ranges are others by now: those of before come back under new ids.
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
            self.next_layout.set_births(id, births(contents));
            let identity = PartitionIdentity::new(id, self.container.rid, version);
            let surroundings = self.container.surroundings.clone();
            let mut partition = Partition::new(identity, range, parents, contents[0].clone(), surroundings);
            for (region, own) in (1..).zip(&contents[1..]) {
                partition.set_copy(RegionId(region), own.clone());
            }
            partition.inherit_conflicts(self.current);
            made.push(Arc::new(partition));
        }
        self.made = Some(made);
    }

    /// Adds what a disk has to know. Costs grow with what was written since it was saved; with all it holds
    /// where its ranges are others by now, which is compared, or where it had been deleted.
    pub(crate) fn put(&self, batch: &mut Batch) {
        let rid = self.container.rid;
        if self.exists {
            self.put_difference(batch);
        } else {
            batch.remove_contents(rid);
            for (line, item) in self.contents.iter().flat_map(|contents| {
                (0..)
                    .zip(contents)
                    .flat_map(|(line, contents)| contents.state.items().map(move |item| (line, item)))
            }) {
                batch.put_item(rid, line, item);
            }
        }
        let partitions = self.made.as_deref().unwrap_or(self.current);
        self.container.put_layout(batch, &self.next_layout, partitions);
        if self.made.is_some() || !self.exists {
            self.current.iter().for_each(|partition| batch.remove_mesh(rid, partition.identity.id));
            partitions.iter().for_each(|partition| partition.put_mesh(batch));
        }
    }

    /// Adds what leads from what is there to what was saved.
    fn put_difference(&self, batch: &mut Batch) {
        let rid = self.container.rid;
        let lines = self.turns.first().map_or(0, |turns| turns.len());
        for line in 0..lines {
            let number = line as u8;
            for then in &self.saved.partitions {
                batch.remove_log_after(then.partition.identity.line_key(number), then.copies[line].state.lsn);
            }
            batch.remove_log_from(LineKey {
                container: rid,
                line: number,
                partition: self.saved.next_range_id,
            });
            let before = self.turns.iter().map(|turns| turns[line].state());
            let after = self.contents.iter().map(|contents| &contents[line].state);
            if self.made.is_none() {
                for (before, after) in before.zip(after) {
                    let see = |ordinal, item: Option<&Arc<Item>>| put_item(batch, rid, number, ordinal, item);
                    each_difference(&before.items, &after.items, see);
                }
            } else {
                let (before, after) = (items_of(before), items_of(after));
                each_difference(&before, &after, |ordinal, item| put_item(batch, rid, number, ordinal, item));
            }
        }
    }

    /// Makes everything as it was. Readers that have begun see what was there before; those that begin
    /// afterwards, in whichever region, see what was saved.
    pub(crate) fn finish(self) {
        let Restoring { container, layout, next_layout, current, mut turns, contents, made, saved, .. } =
            self;
        if let Some(first) = saved.partitions.first() {
            container.set_schema(Arc::clone(&first.copies[0].state.schema));
        }
        *layout = next_layout;
        match made {
            None => {
                for ((turns, partition), contents) in turns.iter_mut().zip(current).zip(contents) {
                    partition.replace(turns, contents);
                }
            }
            Some(made) => {
                container.partitions.store(Arc::new(made));
                turns.iter_mut().flatten().for_each(|turn| turn.retire());
            }
        }
    }
}

impl SavedCopy {
    /// What was saved, as the next thing that happens after `lsn`, with a history from `forgotten` on.
    fn after(&self, lsn: Lsn, progress: VersionVector, forgotten: Lsn) -> Contents {
        let lsn = Lsn(lsn.max(self.state.lsn).0 + 1);
        let head = Head { lsn, versions: progress, ..Head::clone(&self.head) };
        let mut state = PartitionState { lsn, ..PartitionState::clone(&self.state) };
        if forgotten >= lsn {
            state.log = Log::starting_after(lsn);
        } else {
            state.log.forget(forgotten);
            state.log.give_up(self.state.lsn, lsn);
        }
        Contents { head, state }
    }
}

/// The items of several partitions.
fn items_of<'a>(states: impl Iterator<Item = &'a PartitionState>) -> OrdMap<Ordinal, Arc<Item>> {
    states.flat_map(|state| state.items()).map(|item| (item.ordinal, Arc::clone(item))).collect()
}

/// Shows `see` what each item is `after`, where that is not what it is `before`. What both share is not
/// looked at.
fn each_difference(
    before: &OrdMap<Ordinal, Arc<Item>>,
    after: &OrdMap<Ordinal, Arc<Item>>,
    mut see: impl FnMut(Ordinal, Option<&Arc<Item>>),
) {
    for difference in before.diff(after) {
        match difference {
            DiffItem::Add(ordinal, item) | DiffItem::Update { new: (ordinal, item), .. } => {
                see(*ordinal, Some(item));
            }
            DiffItem::Remove(ordinal, _) => see(*ordinal, None),
        }
    }
}

/// Adds what becomes of an item.
fn put_item(batch: &mut Batch, rid: ContainerRid, line: u8, ordinal: Ordinal, item: Option<&Arc<Item>>) {
    match item {
        Some(item) => batch.put_item(rid, line, item),
        None => batch.remove_item(rid, line, ordinal),
    }
}
