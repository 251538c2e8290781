//! Operations on a container's partitions while they serve: split, merge, failover.

use std::sync::Arc;
use std::time::Duration;

use protocol::partition::EffectivePartitionKey;
use thiserror::Error;

use super::Account;
use super::events::EventKind;
use crate::regions::TopologyError;
pub use crate::store::LayoutError;
use crate::store::{Container, SplitMark};

/// Why an operation on partitions failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PartitionError {
    /// The database has no such container.
    #[error("there is no container '{container}' in a database '{database}'")]
    NoContainer {
        /// The name of the database.
        database: String,
        /// The name of the container.
        container: String,
    },
    /// The partitions cannot be split or merged like this.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The region does not exist, or cannot take the partition's writes.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The split point is not an effective partition key.
    #[error("'{0}' is no effective partition key: expected hexadecimal digits")]
    InvalidEpk(String),
}

impl Account {
    /// Splits a partition key range in two, at an effective partition key or in the middle. Cost grows with
    /// the items in it.
    pub fn split_partition(
        &self,
        database: &str,
        container: &str,
        range: u32,
        at: Option<&str>,
        uptime: Duration,
    ) -> Result<[u32; 2], PartitionError> {
        let at = at.map(position).transpose()?;
        let made = self.container_store(database, container)?.split(range, at.as_ref(), uptime)?;
        let [low, high] = made;
        let message = format!("{database}/{container}: range {range} was split into {low} and {high}");
        self.events.record(EventKind::Split, None, message);
        Ok(made)
    }

    /// Merges neighbouring partition key ranges into one.
    pub fn merge_partitions(
        &self,
        database: &str,
        container: &str,
        ranges: &[u32],
        uptime: Duration,
    ) -> Result<u32, PartitionError> {
        let made = self.container_store(database, container)?.merge(ranges, uptime)?;
        let ranges: Vec<String> = ranges.iter().map(u32::to_string).collect();
        let message = format!("{database}/{container}: ranges {} were merged into {made}", ranges.join(", "));
        self.events.record(EventKind::Merge, None, message);
        Ok(made)
    }

    /// Marks a range as being split, so that requests that name it get 410/1007, or removes the mark.
    pub fn set_splitting(
        &self,
        database: &str,
        container: &str,
        range: u32,
        splitting: bool,
    ) -> Result<(), PartitionError> {
        let until = if splitting { Duration::MAX } else { Duration::ZERO };
        self.set_split_mark(database, container, range, SplitMark::Locked, until)
    }

    /// Marks a range as being split until an uptime, at which the mark ends by itself.
    pub fn set_split_mark(
        &self,
        database: &str,
        container: &str,
        range: u32,
        mark: SplitMark,
        until: Duration,
    ) -> Result<(), PartitionError> {
        let store = self.container_store(database, container)?;
        match store.set_split_mark(range, mark, until) {
            true => Ok(()),
            false => Err(LayoutError::UnknownRange(range).into()),
        }
    }

    /// Fails one range over: moves its writes to another region, which has seen all of them before it takes
    /// its first. The other ranges stay where they are.
    pub fn fail_over_partition(
        &self,
        database: &str,
        container: &str,
        range: u32,
        region: &str,
    ) -> Result<(), PartitionError> {
        let topology = self.regions.current();
        let region = topology.find(region)?;
        if !topology.has_partition_failover() {
            return Err(TopologyError::NoPartitionFailover.into());
        }
        if !topology.is_listed(region) {
            return Err(TopologyError::Removed(topology.region(region).name.clone()).into());
        }
        let own = Some(region).filter(|region| *region != topology.hub());
        let name = topology.region(region).name.clone();
        drop(topology);
        self.container_store(database, container)?.fail_over(range, own)?;
        let message = format!("it takes the writes of {database}/{container}, range {range}");
        self.events.record(EventKind::PartitionFailover, Some(&name), message);
        Ok(())
    }

    /// Checks whether [`split_partition`](Account::split_partition) is possible now.
    pub(crate) fn check_split(
        &self,
        database: &str,
        container: &str,
        range: u32,
        at: Option<&str>,
    ) -> Result<(), PartitionError> {
        let at = at.map(position).transpose()?;
        Ok(self.container_store(database, container)?.check_split(range, at.as_ref())?)
    }

    /// Checks whether [`merge_partitions`](Account::merge_partitions) is possible now.
    pub(crate) fn check_merge(
        &self,
        database: &str,
        container: &str,
        ranges: &[u32],
    ) -> Result<(), PartitionError> {
        Ok(self.container_store(database, container)?.check_merge(ranges)?)
    }

    fn container_store(&self, database: &str, container: &str) -> Result<Arc<Container>, PartitionError> {
        let snapshot = self.catalog.snapshot();
        let found = snapshot.container(database, container).map_err(|_| PartitionError::NoContainer {
            database: database.to_owned(),
            container: container.to_owned(),
        })?;
        Ok(Arc::clone(&found.store))
    }
}

fn position(hex: &str) -> Result<EffectivePartitionKey, PartitionError> {
    EffectivePartitionKey::from_hex(hex).map_err(|_| PartitionError::InvalidEpk(hex.to_owned()))
}
