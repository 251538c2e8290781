//! Request units: what operations cost, and how many a partition may spend.
//!
//! [`price`] says what an operation costs, [`budget`] whether a partition can afford another one;
//! both are pure. [`tally`] counts what was spent. A [`Meter`] holds budget and count of one physical
//! partition, for each region apart: throughput is provisioned per region. Who is asked and who pays
//! is decided where operations are handled, in `handlers/items/bill`.

mod budget;
mod meter;
mod mode;
mod price;
mod tally;
pub mod throughput;

pub use budget::Priority;
pub(crate) use meter::{Budgets, Meter, Pools};
pub use mode::RequestUnits;
pub use price::{
    CONFLICT, METADATA_READ, MISS, PRECONDITION, QueryWork, THROTTLED, create, feed, patch, query, read,
    read_factor, replace,
};
pub use tally::PartitionUsage;
