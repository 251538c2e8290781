//! What is done to a partition besides reading and writing: its regions fall behind and catch up, its rules
//! change, and others take its place.

use std::sync::Arc;
use std::time::Duration;

use super::{Copies, Partition};
use crate::disk::{Batch, DiskError};
use crate::regions::RegionId;
use crate::store::contents::Contents;
use crate::store::line::{Line, Turn};
use crate::store::schema::ContainerSchema;
use crate::store::state::PartitionState;
use crate::store::view::View;

impl Partition {
    /// Moves its writes to a region of its own, which has caught up before it takes the first one, or back to
    /// where the account writes.
    pub(crate) fn move_to(&self, region: Option<RegionId>) {
        let account_writes = self.surroundings.regions.current().hub();
        let (before, after) =
            (self.write_region.own().unwrap_or(account_writes), region.unwrap_or(account_writes));
        self.write_region.set(region);
        // Where it is written everything is seen, and from then on nothing is sent there: neither may it be
        // behind when that begins, nor when it ends.
        self.catch_up(before);
        self.catch_up(after);
    }

    /// Is written where the first of those was whose place it takes.
    pub(in crate::store) fn inherit_home(&self, old: &[Arc<Partition>]) {
        self.write_region.set(old.first().and_then(|partition| partition.write_region()));
    }

    /// Lets a region see everything at once: it begins to write, or has just stopped.
    pub(in crate::store) fn catch_up(&self, region: RegionId) {
        if let Copies::Viewed(copies) = &self.copies {
            copies.catch_up(region);
        }
    }

    /// Keeps what a region sees now, which nothing new will reach.
    pub(in crate::store) fn pause(&self, region: RegionId, uptime: Duration) {
        self.seen(region, uptime);
    }

    /// Lets a region that was paused see everything, at `due`.
    pub(in crate::store) fn resume(&self, region: RegionId, uptime: Duration, due: Duration) {
        if let Copies::Viewed(copies) = &self.copies {
            copies.resume(region, uptime, due);
        }
    }

    /// Takes on other rules. Regions see them at once, and with them everything written so far.
    pub(in crate::store) fn adopt(&self, schema: &Arc<ContainerSchema>) {
        let mut turns = self.turns();
        // What cannot arrive now, for want of room on a disk, is settled under the other rules.
        let _ = self.settle(&mut turns);
        turns.iter_mut().for_each(|turn| turn.adopt(schema));
        if let Copies::Viewed(copies) = &self.copies {
            copies.show_everywhere(&turns[0].head());
        }
    }

    /// Puts something else in the place of everything it holds: `contents` for each turn.
    pub(in crate::store) fn replace(&self, turns: &mut [Turn<'_>], contents: Vec<Contents>) {
        for (turn, contents) in turns.iter_mut().zip(contents) {
            let head = turn.replace(contents.head, contents.state);
            if let Copies::Viewed(copies) = &self.copies {
                copies.show_everywhere(&head);
            }
        }
    }

    /// Makes the index of what was read from disk.
    pub(in crate::store) fn make_index(&self) {
        self.lines().for_each(Line::make_index);
    }

    /// Waits for the index of what was read from disk, which a turn does not.
    pub(in crate::store) fn wait_for_index(&self) {
        self.lines().for_each(Line::wait_for_index);
    }

    /// Every writer's turn, the deciding one first, for what is more than a transaction.
    pub(in crate::store) fn turns(&self) -> Vec<Turn<'_>> {
        self.lines().map(Line::turn).collect()
    }

    /// The same, with all that was on its way between regions that write arrived.
    pub(in crate::store) fn close(&self) -> Result<Vec<Turn<'_>>, DiskError> {
        let mut turns = self.turns();
        self.settle(&mut turns)?;
        Ok(turns)
    }

    /// Lets what is on its way between regions that write arrive, whatever the lag.
    pub(in crate::store) fn settle(&self, turns: &mut [Turn<'_>]) -> Result<(), DiskError> {
        match &self.copies {
            Copies::Viewed(_) => Ok(()),
            Copies::Mesh(copies) => self.with_post(Duration::ZERO, |post| copies.settle(post, turns)),
        }
    }

    /// The same while they write: so many letters to each at the most. Says how many are left.
    pub(in crate::store) fn settle_some(&self, letters_max: u64) -> Result<u64, DiskError> {
        match &self.copies {
            Copies::Viewed(_) => Ok(0),
            Copies::Mesh(copies) => {
                self.with_post(Duration::ZERO, |post| copies.settle_some(post, letters_max))
            }
        }
    }

    /// How many letters are on their way between regions that write.
    pub(in crate::store) fn letters(&self) -> u64 {
        match &self.copies {
            Copies::Viewed(_) => 0,
            Copies::Mesh(copies) => copies.letters_under_way(),
        }
    }

    /// Adds what is kept of its copies where every region writes, when nothing is on its way.
    pub(in crate::store) fn put_mesh(&self, batch: &mut Batch) {
        if let Copies::Mesh(copies) = &self.copies {
            self.with_post(Duration::ZERO, |post| copies.put(post, batch));
        }
    }

    /// Forgets a version that lost; says whether it was there.
    pub fn remove_conflict(&self, number: u64) -> Result<bool, DiskError> {
        match &self.copies {
            Copies::Viewed(_) => Ok(false),
            Copies::Mesh(copies) => {
                self.with_post(Duration::ZERO, |post| copies.remove_conflict(post, number))
            }
        }
    }

    /// What a region that does not write sees, to keep.
    pub(in crate::store) fn seen(&self, region: RegionId, uptime: Duration) -> Option<Arc<PartitionState>> {
        match &self.copies {
            Copies::Viewed(copies) => copies.seen(region, uptime),
            Copies::Mesh(_) => None,
        }
    }

    /// When the first commit was made that a region which does not write does not see.
    pub(in crate::store) fn behind_since(&self, region: RegionId, uptime: Duration) -> Option<Duration> {
        match &self.copies {
            Copies::Viewed(copies) => copies.behind_since(region, uptime),
            Copies::Mesh(_) => None,
        }
    }

    /// Decides what a region sees of a partition that is being made.
    pub(in crate::store) fn set_view(&mut self, region: RegionId, view: View) {
        if let Copies::Viewed(copies) = &mut self.copies {
            copies.set_view(region, view);
        }
    }

    /// Decides what a region that writes has of a partition that is being made.
    pub(in crate::store) fn set_copy(&mut self, region: RegionId, contents: Contents) {
        if let Copies::Mesh(copies) = &mut self.copies {
            copies.set_copy(region, contents);
        }
    }

    /// Takes over what was kept of conflicts in the partitions it comes from.
    pub(in crate::store) fn inherit_conflicts(&self, old: &[Arc<Partition>]) {
        let Some(mut own) = self.conflicts() else { return };
        for theirs in old.iter().filter_map(|partition| partition.conflicts()) {
            theirs
                .all()
                .filter(|conflict| conflict.is_within(&self.range))
                .cloned()
                .for_each(|conflict| own.add(conflict));
        }
    }
}
