//! Caches of metadata: the account's properties, containers, partition ranges.
//!
//! Each cache fetches a value once for all concurrent callers ([`single_flight`]), keeps no errors, and
//! is bounded. How to fetch is handed in, so that nothing here knows of requests; when to distrust
//! what is cached is decided by the caller that got a response which contradicts it.

mod account;
mod container;
mod partition_ranges;
mod single_flight;

pub(crate) use account::{AccountCache, parse_account};
pub use container::Container;
pub(crate) use container::{ContainerCache, ContainerDefinition};
pub use partition_ranges::PartitionRanges;
pub(crate) use partition_ranges::{RangeFeed, RangePage, parse_ranges, read_ranges};
