//! What a container is: its key, its index, its rules.

mod partition_key;
mod path;

pub use partition_key::{
    BadPartitionKeyDefinition, KeyCoverage, PARTITION_KEY_PATHS_MAX, PartitionKeyDefinition,
    PartitionKeyKind, PartitionKeyVersion,
};
pub use path::{BadPath, PartitionKeyPath};
