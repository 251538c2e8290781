//! Child partitions under construction: the contents of the parents, divided by range, which follow the
//! writers.
//!
//! Children are built while writes continue, and then follow the parents' change logs. As long as each round
//! leaves less to follow than the one before, writers notice nothing. From then on writers help: each commit
//! takes the children [`COMMITS_PER_WRITE`] commits further, and applies two of the replication messages in
//! flight to each region. So less is left after every write, however fast writers are and however little
//! time this thread gets; a write costs a few times what it did, and at the end all write guards are held for
//! the few steps that remain.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use protocol::lsn::Lsn;
use protocol::partition::EpkRange;

use super::swap::PartitionSwap;
use crate::disk::DiskError;
use crate::regions::{RegionId, Topology};
use crate::store::partition::Partition;
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::progress::VersionVector;
use crate::store::replica::state::PartitionState;
use crate::store::replica::version_chain::WriteGuard;

/// Commits of a chain, or messages to a region, that are applied at a time while writers wait.
const STEP_MAX: u64 = 32;
/// How long writers have the partition to themselves between two steps.
const STEP_PAUSE: Duration = Duration::from_millis(1);
/// Commits that a helping writer applies to the children.
const COMMITS_PER_WRITE: u64 = 3;

/// The write guards of each parent, by region.
pub(in crate::store) type WriteGuards<'a> = Vec<Vec<WriteGuard<'a>>>;

/// The children of a split or merge, while they catch up with their parents.
pub(in crate::store) struct ChildPartitions<'e> {
    old: &'e [Arc<Partition>],
    /// Ids and ranges in EPK order, and what regions see whose replication is paused.
    ranges: Vec<(u32, EpkRange, Vec<PausedView>)>,
    /// One for each version chain: one, or one per region where all regions write. Those hold the same items
    /// once everything has arrived, each in its own order of arrival: change feeds continue by that order.
    chains: Vec<Arc<Mutex<ChildContents>>>,
    /// Messages and commits that were left when writers were stopped.
    remaining_at_close: u64,
}

/// What a paused region sees, and since when it has missed commits.
pub(in crate::store) type PausedView = (RegionId, ReplicaContents, Option<Duration>);

/// A child that has caught up.
pub(in crate::store) struct ChildPartition {
    pub(in crate::store) id: u32,
    pub(in crate::store) range: EpkRange,
    pub(in crate::store) chains: Vec<ReplicaContents>,
    pub(in crate::store) paused: Vec<PausedView>,
}

/// What the children hold in one version chain.
struct ChildContents {
    /// The contents of each child, in EPK order.
    contents: Vec<(EpkRange, ReplicaContents)>,
    /// Up to which LSN each parent has been followed.
    applied_up_to: Vec<Lsn>,
}

/// Applies the commits of one version chain of a parent to the children. The chain's log is not trimmed
/// while it has a follower.
pub(in crate::store) struct LogFollower {
    children: Arc<Mutex<ChildContents>>,
    /// The index of the parent.
    parent: usize,
    /// Whether writers apply some commits themselves.
    pub(in crate::store) writers_help: bool,
}

impl LogFollower {
    /// Applies the share of a helping writer; `newest` is the chain's state under its write guard.
    pub(in crate::store) fn help_catch_up(&self, newest: &PartitionState) {
        if self.writers_help {
            self.follow(newest, COMMITS_PER_WRITE);
        }
    }

    /// Applies up to `commits_max` commits. Returns how many are left up to `newest`.
    fn follow(&self, newest: &PartitionState, commits_max: u64) -> u64 {
        self.children.lock().follow(self.parent, newest, commits_max)
    }
}

impl ChildContents {
    fn follow(&mut self, parent: usize, newest: &PartitionState, commits_max: u64) -> u64 {
        let ChildContents { contents, applied_up_to } = self;
        let from = applied_up_to[parent];
        debug_assert!(newest.log.covers(from), "a log with a follower is not trimmed");
        let to = newest.lsn.min(Lsn(from.0.saturating_add(commits_max)));
        if from < to {
            for (range, contents) in contents {
                match applied_up_to.len() {
                    1 => contents.roll_forward(&newest.log, range, to),
                    _ => contents.merge_history(parent, &newest.log, range, (from, to)),
                }
            }
            applied_up_to[parent] = to;
        }
        newest.lsn.0 - to.0
    }
}

impl<'e> ChildPartitions<'e> {
    /// Builds the children from what the parents hold now. Cost grows with the items.
    pub(in crate::store) fn of(swap: &'e PartitionSwap, topology: &Topology) -> ChildPartitions<'e> {
        let PartitionSwap { old, new, uptime, .. } = swap;
        // Ranges merge only when every region has seen all of them, so a merge has no paused views.
        let paused = topology.regions().filter(|_| old.len() == 1).filter_map(|(region, there)| {
            let paused_at = there.paused_at?.min(*uptime);
            let visible = old[0].visible_state(region, paused_at)?;
            Some((region, [visible], old[0].behind_since(region, paused_at)))
        });
        let paused: Vec<_> = paused.collect();
        let paused_within = |range: &EpkRange| -> Vec<PausedView> {
            let within = |(region, visible, since): &(RegionId, [Arc<PartitionState>; 1], _)| {
                (*region, ReplicaContents::of(visible, range), *since)
            };
            paused.iter().map(within).collect()
        };
        let ranges = new.iter().map(|(id, range)| (*id, range.clone(), paused_within(range))).collect();
        let empty =
            || Arc::new(Mutex::new(ChildContents { contents: Vec::new(), applied_up_to: Vec::new() }));
        let chains = old[0].chains().map(|_| empty()).collect();
        let children = ChildPartitions { old, ranges, chains, remaining_at_close: 0 };
        // First of all: from now on the parents' logs are not trimmed.
        children.set_followers(false);
        let newest = children.parent_states();
        for (chain, contents) in children.chains.iter().enumerate() {
            let states: Vec<Arc<PartitionState>> =
                newest.iter().map(|chains| Arc::clone(&chains[chain])).collect();
            let mut child = contents.lock();
            child.contents =
                new.iter().map(|(_, range)| (range.clone(), ReplicaContents::of(&states, range))).collect();
            child.applied_up_to = states.iter().map(|state| state.lsn).collect();
        }
        children
    }

    /// Follows the parents' logs while writers continue, as long as each round leaves less than the one before.
    pub(in crate::store) fn follow(&mut self) -> Result<(), DiskError> {
        let mut behind_last = u64::MAX;
        loop {
            for partition in self.old {
                partition.deliver_some(STEP_MAX)?;
            }
            let newest = self.parent_states();
            let behind = self.follow_each(&newest, 0);
            // Each round leaves what is written during it, which may be as much as before.
            if behind <= STEP_MAX || behind > behind_last / 2 {
                return Ok(());
            }
            self.follow_each(&newest, u64::MAX);
            behind_last = behind;
        }
    }

    /// Closes the parents to writers, with the children at the end of their logs.
    pub(in crate::store) fn close(&mut self) -> Result<WriteGuards<'e>, DiskError> {
        self.set_followers(true);
        // Ends because every write applies more than it adds; the pause lets writers do so.
        loop {
            let mut left = 0;
            for partition in self.old {
                left += partition.deliver_some(STEP_MAX)?;
                left += partition.chains().map(|chain| follow(&chain.write_guard(), STEP_MAX)).sum::<u64>();
            }
            if left <= STEP_MAX {
                break;
            }
            std::thread::sleep(STEP_PAUSE);
        }
        // In EPK order, as everything does that takes more than one guard: so no two deadlock.
        let mut guards: WriteGuards<'e> = self.old.iter().map(|partition| partition.write_guards()).collect();
        for (partition, guards) in self.old.iter().zip(&mut guards) {
            let commits = guards.iter().map(|guard| follow(guard, 0)).sum::<u64>();
            self.remaining_at_close += partition.pending_messages() + commits;
            partition.deliver_all(guards)?;
            let left: u64 = guards.iter().map(|guard| follow(guard, u64::MAX)).sum();
            debug_assert_eq!(left, 0, "no writer runs while the guards are held");
        }
        tracing::debug!(remaining = self.remaining_at_close, "writers wait while partitions are swapped");
        self.set_versions(&guards);
        Ok(guards)
    }

    /// The finished children, once their parents are closed.
    pub(in crate::store) fn into_children(mut self) -> Vec<ChildPartition> {
        let ranges = std::mem::take(&mut self.ranges).into_iter();
        let mut children: Vec<ChildPartition> = ranges
            .map(|(id, range, paused)| ChildPartition { id, range, chains: Vec::new(), paused })
            .collect();
        for chain in &self.chains {
            for (child, (_, contents)) in children.iter_mut().zip(chain.lock().contents.drain(..)) {
                child.chains.push(contents);
            }
        }
        children
    }

    /// Gives the children the version vector of the parents, of which everything has arrived everywhere.
    fn set_versions(&self, guards: &WriteGuards<'_>) {
        let versions =
            guards.iter().map(|guards| guards[0].head().progress().versions).reduce(VersionVector::joined);
        let versions = versions.unwrap_or_default();
        for chain in &self.chains {
            let mut child = chain.lock();
            child.contents.iter_mut().for_each(|(_, contents)| contents.head.versions = versions.clone());
        }
    }

    /// Registers the followers at the parents' chains, and whether writers help them.
    fn set_followers(&self, writers_help: bool) {
        for (parent, partition) in self.old.iter().enumerate() {
            for (chain, children) in partition.chains().zip(&self.chains) {
                let children = Arc::clone(children);
                chain.set_follower(Some(LogFollower { children, parent, writers_help }));
            }
        }
    }

    /// The newest state of every chain of every parent.
    fn parent_states(&self) -> Vec<Vec<Arc<PartitionState>>> {
        self.old.iter().map(|partition| partition.chains().map(|chain| chain.snapshot()).collect()).collect()
    }

    /// Applies up to `commits_max` commits of each chain. Returns how many are left up to `newest` on the
    /// chain where that is most.
    fn follow_each(&self, newest: &[Vec<Arc<PartitionState>>], commits_max: u64) -> u64 {
        let mut left = 0;
        for (parent, states) in newest.iter().enumerate() {
            for (chain, newest) in self.chains.iter().zip(states) {
                left = left.max(chain.lock().follow(parent, newest, commits_max));
            }
        }
        left
    }
}

impl Drop for ChildPartitions<'_> {
    fn drop(&mut self) {
        self.old.iter().flat_map(|partition| partition.chains()).for_each(|chain| chain.set_follower(None));
    }
}

/// Lets the follower of a chain apply commits under the chain's write guard. Returns how many are left.
fn follow(guard: &WriteGuard<'_>, commits_max: u64) -> u64 {
    guard.follower().map_or(0, |follower| follower.follow(guard.state(), commits_max))
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
        let write = WriteContext { region: RegionId(region), now: 0, uptime };
        let written = container.write(&document.epk, write, |transaction| -> Result<(), WriteError> {
            transaction.upsert(&document, Precondition::None).map(drop)
        });
        written.unwrap().1.result.unwrap();
    }

    /// Ends the writers, also when the test fails.
    struct StopOnDrop<'a>(&'a AtomicBool);

    impl Drop for StopOnDrop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn writers_wait_for_a_few_steps_however_fast_they_are() {
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
            let (writes, _stop_on_drop) = (&writes, StopOnDrop(&stop));
            (0..3).for_each(|region| drop(scope.spawn(move || writes(region))));
            let old = container.partitions().to_vec();
            let new = vec![(1, old[0].range.clone())];
            let swap = PartitionSwap { old, new, token_version: 1, uptime: Duration::ZERO };
            let topology = container.context.regions.current();
            for _ in 0..3 {
                let mut children = ChildPartitions::of(&swap, &topology);
                children.follow().unwrap();
                let guards = children.close().unwrap();
                // A few for each writer that was between its commit and its help.
                assert!(
                    children.remaining_at_close <= STEP_MAX + 3 * 16,
                    "{} steps",
                    children.remaining_at_close
                );
                let child = children.into_children().pop().unwrap();
                for (guard, contents) in guards[0].iter().zip(&child.chains) {
                    assert_eq!(contents.state.lsn, guard.state().lsn);
                    assert!(contents.state.items().eq(guard.state().items()), "the same, in each region");
                }
            }
        });
    }
}
