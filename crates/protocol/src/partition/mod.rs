//! Partition keys, their effective partition keys (EPKs), and ranges of the EPK space.
//!
//! An item's [`PartitionKey`] is hashed by its container's [`PartitionKeyDefinition`] to an
//! [`EffectivePartitionKey`]; a physical partition owns an [`EpkRange`] of those. Everything here
//! is a pure function of its arguments.

mod definition; // the partition key definition of a container
mod effective; // partition key → effective partition key
mod header; // partition key ↔ header text
mod key; // partition key values
mod path; // paths of partition keys
mod range; // ranges of the EPK space
mod split; // where to split a range

pub use definition::{
    KeyCompleteness, PARTITION_KEY_PATHS_MAX, PartitionKeyDefinition, PartitionKeyDefinitionError,
    PartitionKeyKind, PartitionKeyVersion,
};
pub use effective::{EffectivePartitionKey, EffectivePartitionKeyError, effective_key, prefix_range};
pub use header::{PartitionKeyError, PartitionKeyHeader};
pub use key::{PartitionKey, PartitionKeyComponent};
pub(crate) use path::after_slash;
pub use path::{PartitionKeyPath, PartitionKeyPathError};
pub use range::EpkRange;
pub use split::{even_split, split_point};
