//! Partitions to be: what the old ones hold, cut for the new ones, and how that keeps up with writers.
//!
//! Drafts are made while writes go on, and then follow the log. As long as each round leaves less to follow
//! than the one before, nobody notices. From then on writers help: whoever commits takes the drafts three
//! commits further, and lets two of the letters arrive that are on their way to each region. So less is left
//! after every write, however fast writers are and however little time this thread is given; a write costs
//! a few times what it did, and at the end all turns are taken for the few steps that remain.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use protocol::lsn::Lsn;
use protocol::partition::EpkRange;

use super::contents::Contents;
use super::exchange::Exchange;
use super::line::Turn;
use super::partition::Partition;
use super::reach::VersionVector;
use super::state::PartitionState;
use crate::disk::DiskError;
use crate::regions::{RegionId, Topology};

/// Commits of a line, or letters to a region, that writers wait for at a time.
const PIECE: u64 = 32;
/// How long writers have the partition to themselves in between.
const BREATH: Duration = Duration::from_millis(1);
/// Commits that whoever makes one follows.
const COMMITS_EACH: u64 = 3;

/// The writers of each old partition, by region.
pub(super) type Turns<'a> = Vec<Vec<Turn<'a>>>;

/// The partitions to be.
pub(super) struct Drafts<'e> {
    old: &'e [Arc<Partition>],
    /// In the order of the ring: their ids, ranges, and what the regions see that nothing reaches.
    ranges: Vec<(u32, EpkRange, Vec<Paused>)>,
    /// One for each line: one, or one per region where all regions write. Those have the same once
    /// everything has arrived, each in the order in which it came to them: that is what feeds go on by.
    lines: Vec<Arc<Mutex<Heirs>>>,
    /// Letters and commits that were left when writers were held for good.
    left_last: u64,
}

/// What a region sees that nothing reaches, and since when it has missed something.
pub(super) type Paused = (RegionId, Contents, Option<Duration>);

/// A partition to be, that has caught up.
pub(super) struct Draft {
    pub(super) id: u32,
    pub(super) range: EpkRange,
    pub(super) lines: Vec<Contents>,
    pub(super) paused: Vec<Paused>,
}

/// What the new ones hold in one line.
struct Heirs {
    /// In the order of the ring.
    made: Vec<(EpkRange, Contents)>,
    /// How far each old partition has been followed.
    reached: Vec<Lsn>,
}

/// Somebody who follows a line of an old partition. Nothing of its log is forgotten meanwhile.
pub(super) struct Follower {
    heirs: Arc<Mutex<Heirs>>,
    /// Which of the old partitions.
    at: usize,
    /// Whether those who commit help.
    pub(super) is_helped: bool,
}

impl Follower {
    /// Goes on by what whoever commits owes; `newest` is the state of the line, in its turn.
    pub(super) fn help(&self, newest: &PartitionState) {
        if self.is_helped {
            self.follow(newest, COMMITS_EACH);
        }
    }

    /// Does again what was committed up to `newest`, so many commits at the most. Says how many are left.
    fn follow(&self, newest: &PartitionState, commits_max: u64) -> u64 {
        let mut heirs = self.heirs.lock().unwrap_or_else(PoisonError::into_inner);
        heirs.follow(self.at, newest, commits_max)
    }
}

impl Heirs {
    fn follow(&mut self, at: usize, newest: &PartitionState, commits_max: u64) -> u64 {
        let Heirs { made, reached } = self;
        let from = reached[at];
        debug_assert!(newest.log.reaches(from), "a log that is followed forgets nothing");
        let to = newest.lsn.min(Lsn(from.0.saturating_add(commits_max)));
        if from < to {
            for (range, contents) in made {
                match reached.len() {
                    1 => contents.follow(&newest.log, range, to),
                    _ => contents.follow_one(at, &newest.log, range, (from, to)),
                }
            }
            reached[at] = to;
        }
        newest.lsn.0 - to.0
    }
}

impl<'e> Drafts<'e> {
    /// What the new ones hold, if nothing more is written. Cost grows with the items.
    pub(super) fn of(exchange: &'e Exchange, topology: &Topology) -> Drafts<'e> {
        let Exchange { old, new, uptime, .. } = exchange;
        // Ranges merge when every region has seen all of them.
        let paused = topology.regions().filter(|_| old.len() == 1).filter_map(|(region, there)| {
            let seen_until = there.paused_at?.min(*uptime);
            let seen = old[0].seen(region, seen_until)?;
            Some((region, [seen], old[0].behind_since(region, seen_until)))
        });
        let paused: Vec<_> = paused.collect();
        let paused_within = |range: &EpkRange| -> Vec<Paused> {
            let within = |(region, seen, since): &(RegionId, [Arc<PartitionState>; 1], _)| {
                (*region, Contents::of(seen, range), *since)
            };
            paused.iter().map(within).collect()
        };
        let ranges = new.iter().map(|(id, range)| (*id, range.clone(), paused_within(range))).collect();
        let mut drafts = Drafts { old, ranges, lines: Vec::new(), left_last: 0 };
        let heirs = || Arc::new(Mutex::new(Heirs { made: Vec::new(), reached: Vec::new() }));
        drafts.lines = old[0].lines().map(|_| heirs()).collect();
        // First of all: from now on the logs are kept.
        drafts.let_follow(false);
        let newest = drafts.newest();
        for (line, heirs) in drafts.lines.iter().enumerate() {
            let states: Vec<Arc<PartitionState>> =
                newest.iter().map(|lines| Arc::clone(&lines[line])).collect();
            let mut heirs = heirs.lock().unwrap_or_else(PoisonError::into_inner);
            heirs.made = new.iter().map(|(_, range)| (range.clone(), Contents::of(&states, range))).collect();
            heirs.reached = states.iter().map(|state| state.lsn).collect();
        }
        drafts
    }

    /// Follows what is written while writers go on, as long as that leaves less and less.
    pub(super) fn follow(&mut self) -> Result<(), DiskError> {
        let mut behind_last = u64::MAX;
        loop {
            for partition in self.old {
                partition.settle_some(PIECE)?;
            }
            let newest = self.newest();
            let behind = self.follow_each(&newest, 0);
            // Each round leaves what is written during it, which may be as much as before.
            if behind <= PIECE || behind > behind_last / 2 {
                return Ok(());
            }
            self.follow_each(&newest, u64::MAX);
            behind_last = behind;
        }
    }

    /// Closes the old ones to writers, with the drafts at the end of what was written.
    pub(super) fn close(&mut self) -> Result<Turns<'e>, DiskError> {
        self.let_follow(true);
        loop {
            let mut left = 0;
            for partition in self.old {
                left += partition.settle_some(PIECE)?;
                left += partition.lines().map(|line| follow(&line.turn(), PIECE)).sum::<u64>();
            }
            if left <= PIECE {
                break;
            }
            std::thread::sleep(BREATH);
        }
        // In the order of the ring, as everybody who takes more than one.
        let mut turns: Turns<'e> = self.old.iter().map(|partition| partition.turns()).collect();
        for (partition, turns) in self.old.iter().zip(&mut turns) {
            self.left_last += partition.letters() + turns.iter().map(|turn| follow(turn, 0)).sum::<u64>();
            partition.settle(turns)?;
            let left: u64 = turns.iter().map(|turn| follow(turn, u64::MAX)).sum();
            debug_assert_eq!(left, 0, "nobody writes meanwhile");
        }
        tracing::debug!(left = self.left_last, "writers wait while ranges are replaced");
        self.note_progress(&turns);
        Ok(turns)
    }

    /// What is to become of them, once they are closed.
    pub(super) fn into_made(mut self) -> Vec<Draft> {
        let ranges = std::mem::take(&mut self.ranges).into_iter();
        let mut made: Vec<Draft> =
            ranges.map(|(id, range, paused)| Draft { id, range, lines: Vec::new(), paused }).collect();
        for heirs in &self.lines {
            let mut heirs = heirs.lock().unwrap_or_else(PoisonError::into_inner);
            for (draft, (_, contents)) in made.iter_mut().zip(heirs.made.drain(..)) {
                draft.lines.push(contents);
            }
        }
        made
    }

    /// Everything has arrived everywhere, so the partition furthest ahead says how far all are.
    fn note_progress(&self, turns: &Turns<'_>) {
        let progress =
            turns.iter().map(|turns| turns[0].head().progress().versions).reduce(VersionVector::joined);
        let progress = progress.unwrap_or_default();
        for heirs in &self.lines {
            let mut heirs = heirs.lock().unwrap_or_else(PoisonError::into_inner);
            heirs.made.iter_mut().for_each(|(_, contents)| contents.head.versions = progress.clone());
        }
    }

    /// Lets the old ones know that they are followed, and whether whoever commits helps.
    fn let_follow(&self, is_helped: bool) {
        for (at, partition) in self.old.iter().enumerate() {
            for (line, heirs) in partition.lines().zip(&self.lines) {
                line.let_follow(Some(Follower { heirs: Arc::clone(heirs), at, is_helped }));
            }
        }
    }

    /// The newest state of every line.
    fn newest(&self) -> Vec<Vec<Arc<PartitionState>>> {
        self.old.iter().map(|partition| partition.lines().map(|line| line.snapshot()).collect()).collect()
    }

    /// Goes on to `newest`, by so many commits at the most. Says how many are left, on the line where those
    /// are most.
    fn follow_each(&self, newest: &[Vec<Arc<PartitionState>>], commits_max: u64) -> u64 {
        let mut left = 0;
        for (at, lines) in newest.iter().enumerate() {
            for (heirs, newest) in self.lines.iter().zip(lines) {
                let mut heirs = heirs.lock().unwrap_or_else(PoisonError::into_inner);
                left = left.max(heirs.follow(at, newest, commits_max));
            }
        }
        left
    }
}

impl Drop for Drafts<'_> {
    fn drop(&mut self) {
        self.old.iter().flat_map(|partition| partition.lines()).for_each(|line| line.let_follow(None));
    }
}

/// Goes on in the turn of a line. Says how many commits are left.
fn follow(turn: &Turn<'_>, commits_max: u64) -> u64 {
    turn.follower().map_or(0, |follower| follower.follow(turn.state(), commits_max))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use protocol::account::ConsistencyLevel;
    use protocol::container::ContainerProperties;
    use protocol::resource_id::{ContainerRid, DatabaseRid};

    use super::*;
    use crate::regions::{Lag, Region, Regions};
    use crate::store::{Container, Document, Partitioning, Precondition, WriteContext, WriteError};

    /// Three regions that all write, with a container of one range.
    fn container() -> Container {
        let regions = ["West US", "East US", "North Europe"].map(|name| Region::new(name, 0)).to_vec();
        let lag = "20ms".parse::<Lag>().unwrap();
        let topology = Topology::new(regions, true, ConsistencyLevel::Session, lag).unwrap();
        let properties = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        let properties = ContainerProperties::parse(properties.as_bytes()).unwrap();
        let rid = ContainerRid { database: DatabaseRid(1), container: 0x8000_0001 };
        Container::new(rid, &properties, Partitioning::of(1), Arc::new(Regions::new(topology)), None)
    }

    fn write(container: &Container, region: u8, id: u64, uptime: Duration) {
        let body = format!(r#"{{"id":"{id}","pk":"{}","n":{id}}}"#, id % 13);
        let document = Document::parse(body.as_bytes(), &container.schema(), 0).unwrap();
        let moment = WriteContext { region: RegionId(region), now: 0, uptime };
        let written = container.write(&document.epk, moment, |transaction| -> Result<(), WriteError> {
            transaction.upsert(&document, Precondition::None).map(drop)
        });
        written.unwrap().1.result.unwrap();
    }

    /// Ends the writers, also when the test fails.
    struct Stops<'a>(&'a AtomicBool);

    impl Drop for Stops<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn writers_are_held_for_a_few_steps_however_fast_they_are() {
        let container = container();
        for id in 0..300 {
            write(&container, (id % 3) as u8, id, Duration::ZERO);
        }
        let (stop, micros) = (AtomicBool::new(false), AtomicU64::new(0));
        let writes = |region: u8| {
            let mut id = u64::from(region);
            while !stop.load(Ordering::Relaxed) {
                let uptime = Duration::from_micros(micros.fetch_add(10, Ordering::Relaxed));
                write(&container, region, id, uptime);
                id = (id + 7) % 300;
            }
        };
        std::thread::scope(|scope| {
            let (writes, _stops) = (&writes, Stops(&stop));
            (0..3).for_each(|region| drop(scope.spawn(move || writes(region))));
            let old = container.partitions().to_vec();
            let new = vec![(1, old[0].range.clone())];
            let exchange = Exchange { old, new, token_version: 1, uptime: Duration::ZERO };
            let topology = container.surroundings.regions.current();
            for _ in 0..3 {
                let mut drafts = Drafts::of(&exchange, &topology);
                drafts.follow().unwrap();
                let turns = drafts.close().unwrap();
                // A few for each writer that was between its commit and its help.
                assert!(drafts.left_last <= PIECE + 3 * 16, "{} steps", drafts.left_last);
                let draft = drafts.into_made().pop().unwrap();
                for (turn, contents) in turns[0].iter().zip(&draft.lines) {
                    assert_eq!(contents.state.lsn, turn.state().lsn);
                    assert!(contents.state.items().eq(turn.state().items()), "the same, in each region");
                }
            }
        });
    }
}
