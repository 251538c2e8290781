//! The storage engine of a Cosmos DB account on one machine: items in several regions, how they are
//! indexed, queried, replicated and kept, and what that costs. It knows no HTTP.
//!
//! From the bottom to the top: [`items`] are the versions and changes; [`disk`] keeps what is written; [`regions`] says where the account is and
//! what a read may miss; [`charge`] counts request units; [`store`] holds containers, partitions and
//! items; [`query`] and [`change_feed`] find items by value and by time; [`catalog`] holds databases,
//! containers, users and offers; [`account`] is all of it together.

pub mod account;
pub mod catalog;
pub mod change_feed;
pub mod charge;
pub mod disk;
pub mod items;
pub mod query;
pub mod regions;
pub mod store;
