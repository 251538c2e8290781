//! The storage engine of a Cosmos DB account on one machine: items in several regions, their indexes,
//! queries, replication and durability, and what operations cost. It knows no HTTP.
//!
//! From the bottom to the top: [`items`] are item versions and changes; [`disk`] persists commits;
//! [`regions`] is the topology and what a read may miss; [`charge`] counts request units; [`store`] holds
//! containers, partitions and items; [`query`] and [`change_feed`] find items by value and by time;
//! [`catalog`] holds databases, containers, users and offers; [`account`] is all of it together. [`blocking`]
//! runs long work on a thread that serves requests.

pub mod account;
pub mod blocking;
pub mod catalog;
pub mod change_feed;
pub mod charge;
pub mod disk;
pub mod items;
pub mod query;
pub mod regions;
pub mod store;
