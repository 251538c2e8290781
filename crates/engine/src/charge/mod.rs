//! Request units: what operations cost, and how many a partition may spend.
//!
//! [`price`] says what an operation costs, [`budget`] whether a partition can afford another one;
//! both are pure. [`tally`] counts what was spent. A [`PartitionThroughput`] holds budget and count of one physical
//! partition, for each region apart: throughput is provisioned per region. Who is asked and who pays
//! is decided where operations are handled, in `handlers/items/bill`.

mod mode;
mod partition_throughput;
mod price;
pub mod throughput;
mod token_bucket;
mod usage_counter;

pub use mode::RequestUnitMode;
pub(crate) use partition_throughput::{PartitionThroughput, SharedTokenBuckets, TokenBuckets};
pub use price::{
    CONFLICT, METADATA_READ, NOT_FOUND, PRECONDITION_FAILED, QueryWork, THROTTLED, create, feed, patch,
    query, read, read_factor, replace,
};
pub use token_bucket::Priority;
pub use usage_counter::PartitionUsage;
