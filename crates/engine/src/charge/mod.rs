//! Request units: what operations cost, and how many a partition may use.
//!
//! `price` computes what an operation costs; `token_bucket` decides whether a partition admits another
//! one. Both are pure. `usage_counter` counts what was used. A `PartitionThroughput` holds both for one
//! physical partition, for each region apart: throughput is provisioned per region. Which bucket a request is
//! charged to is decided where operations are handled.

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
