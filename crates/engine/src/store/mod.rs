//! The data of the account's containers: container → physical partition → item versions.
//!
//! Readers always get an immutable snapshot of persistent maps: the head for point reads, the partition
//! state for everything that searches. A writer holds its partition's write guard and publishes what it
//! has committed.
//!
//! Reading order: `index` finds items by value; `replica` is what one region holds of a partition;
//! `transaction` changes it; `replication` keeps the regions' replicas in step; `partition` puts these
//! together; `container` owns the partitions under a `schema`; `repartition` splits and merges them;
//! `snapshot` copies containers and puts them back, from memory or from disk.

mod container;
pub mod index;
mod partition;
mod repartition;
mod replica;
mod replication;
mod schema;
mod snapshot;
#[cfg(test)]
mod tests;
mod transaction;

pub use container::{Container, Partitioning, WriteUnavailable};
pub use partition::view::PartitionView;
pub use partition::{Partition, SplitMark, WriteContext, WriteOutcome};
pub(crate) use repartition::added_region::{FixedLayout, RegionAddition};
pub use repartition::layout::LayoutError;
#[cfg(test)]
pub(crate) use replica::head::Head;
pub use replica::progress::Progress;
pub(crate) use replica::state::PartitionState;
pub use replication::conflicts::Conflict;
pub use schema::ContainerSchema;
pub use snapshot::container::ContainerSnapshot;
pub(crate) use snapshot::container::{ContainerRestore, LockedContainer};
pub(crate) use snapshot::load::RestoreContext;
pub use transaction::document::{Document, DocumentError};
pub use transaction::patch::apply as apply_patch;
pub use transaction::{Precondition, Transaction, WriteError, WrittenItem};
