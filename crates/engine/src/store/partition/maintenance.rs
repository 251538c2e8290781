//! What is done to a partition besides reading and writing: failover, paused replication, changed container
//! properties, and replacement by other partitions.

use std::sync::Arc;
use std::time::Duration;

use super::Partition;
use crate::disk::{Batch, DiskError};
use crate::regions::RegionId;
use crate::store::replica::contents::ReplicaContents;
use crate::store::replica::state::PartitionState;
use crate::store::replica::version_chain::{VersionChain, WriteGuard};
use crate::store::replication::follower_view::FollowerView;
use crate::store::schema::ContainerSchema;

impl Partition {
    /// Moves its writes to a region of its own, or back to the account's write region. The region has caught
    /// up before it takes the first write.
    pub(crate) fn set_write_region(&self, region: Option<RegionId>) {
        let account = self.context.regions.current().hub();
        let (before, after) = (self.write_region.get().unwrap_or(account), region.unwrap_or(account));
        self.write_region.set(region);
        // The write region sees everything and is sent nothing, so it must be up to date both when that
        // begins and when it ends.
        self.catch_up(before);
        self.catch_up(after);
    }

    /// Takes over the write region of the first partition that it replaces.
    pub(in crate::store) fn inherit_write_region(&self, old: &[Arc<Partition>]) {
        self.write_region.set(old.first().and_then(|partition| partition.write_region()));
    }

    /// Lets a region see the newest version at once: it becomes the write region, or has just ceased to be.
    pub(in crate::store) fn catch_up(&self, region: RegionId) {
        self.replicas.catch_up(region);
    }

    /// Computes the state that a region sees now, while the log still reaches back to it: nothing new will
    /// arrive there.
    pub(in crate::store) fn pause(&self, region: RegionId, uptime: Duration) {
        self.visible_state(region, uptime);
    }

    /// Lets a region whose replication was paused see the newest version at `due`.
    pub(in crate::store) fn resume(&self, region: RegionId, uptime: Duration, due: Duration) {
        self.replicas.resume(region, uptime, due);
    }

    /// Rebuilds the index under changed container properties. Every region sees them at once, and with them
    /// everything written so far.
    pub(in crate::store) fn apply_schema(&self, schema: &Arc<ContainerSchema>) {
        let mut guards = self.write_guards();
        // Messages that cannot be persisted now stay queued, and are applied under the new schema.
        let _ = self.deliver_all(&mut guards);
        guards.iter_mut().for_each(|guard| guard.apply_schema(schema));
        self.replicas.publish_everywhere(&guards[0].head());
    }

    /// Replaces everything it holds: `contents` for each write guard.
    pub(in crate::store) fn replace(&self, guards: &mut [WriteGuard<'_>], contents: Vec<ReplicaContents>) {
        for (guard, contents) in guards.iter_mut().zip(contents) {
            let head = guard.replace(contents.head, contents.state);
            self.replicas.publish_everywhere(&head);
        }
    }

    /// Builds the index of what was read from disk.
    pub(in crate::store) fn build_index(&self) {
        self.chains().for_each(VersionChain::build_index);
    }

    /// Waits for the index of what was read from disk, for which a write guard does not wait.
    pub(in crate::store) fn wait_for_index(&self) {
        self.chains().for_each(VersionChain::wait_for_index);
    }

    /// The write guards of all version chains, the deciding one first.
    pub(in crate::store) fn write_guards(&self) -> Vec<WriteGuard<'_>> {
        self.chains().map(VersionChain::write_guard).collect()
    }

    /// The write guards of all version chains, after every replication message in flight was applied.
    pub(in crate::store) fn close(&self) -> Result<Vec<WriteGuard<'_>>, DiskError> {
        let mut guards = self.write_guards();
        self.deliver_all(&mut guards)?;
        Ok(guards)
    }

    /// Applies every replication message in flight, whatever the lag.
    pub(in crate::store) fn deliver_all(&self, guards: &mut [WriteGuard<'_>]) -> Result<(), DiskError> {
        self.replicas.deliver_all(self, guards)
    }

    /// Applies up to `messages_max` replication messages per region while writers continue. Returns how many
    /// are left.
    pub(in crate::store) fn deliver_some(&self, messages_max: u64) -> Result<u64, DiskError> {
        self.replicas.deliver_some(self, messages_max)
    }

    /// How many replication messages are in flight.
    pub(in crate::store) fn pending_messages(&self) -> u64 {
        self.replicas.pending_messages()
    }

    /// Adds to `batch` what the disk stores of the replicas where every region writes. Nothing may be in
    /// flight.
    pub(in crate::store) fn put_replicas(&self, batch: &mut Batch) {
        self.replicas.put_replicas(self, batch);
    }

    /// Removes a conflict from the conflicts feed. Returns whether it was there.
    pub fn remove_conflict(&self, number: u64) -> Result<bool, DiskError> {
        self.replicas.remove_conflict(self, number)
    }

    /// The state that a read region sees at `uptime`.
    pub(in crate::store) fn visible_state(
        &self,
        region: RegionId,
        uptime: Duration,
    ) -> Option<Arc<PartitionState>> {
        self.replicas.visible_state(region, uptime)
    }

    /// When the first commit was made that a read region does not see at `uptime`.
    pub(in crate::store) fn behind_since(&self, region: RegionId, uptime: Duration) -> Option<Duration> {
        self.replicas.behind_since(region, uptime)
    }

    /// Sets what a read region sees of a partition under construction.
    pub(in crate::store) fn set_follower_view(&mut self, region: RegionId, view: FollowerView) {
        self.replicas.set_follower_view(region, view);
    }

    /// Sets what a write region holds of a partition under construction.
    pub(in crate::store) fn set_replica(&mut self, region: RegionId, contents: ReplicaContents) {
        self.replicas.set_replica(region, contents);
    }

    /// Takes over the conflicts of the partitions that it replaces.
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
