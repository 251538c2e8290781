//! From a key to a place on the ring.
//!
//! An item's [`PartitionKey`] is hashed by its container's definition to an
//! [`EffectivePartitionKey`]; a physical partition owns an [`EpkRange`] of those. Everything here
//! is a pure function of its arguments.

mod effective; // key → position
mod hash; // MurmurHash3
mod header; // key ↔ header text
mod key; // the values
mod range; // stretches of the ring
mod split; // cutting them

pub use effective::{EffectivePartitionKey, EffectivePartitionKeyError, effective_key, prefix_range};
pub use header::{PartitionKeyError, PartitionKeyHeader};
pub use key::{PartitionKey, PartitionKeyComponent};
pub use range::EpkRange;
pub use split::{even_split, split_point};
