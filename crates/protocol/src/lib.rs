//! The Cosmos DB wire as data.

pub mod account;
pub mod authorization;
pub mod binary_json;
pub mod container;
pub mod database;
pub mod headers;
pub mod lsn;
mod number;
pub mod partition;
pub mod partition_range;
pub mod query;
pub mod resource;
pub mod resource_id;
pub mod resource_path;
pub mod session_token;
pub mod status;
pub mod throughput;
pub mod user;
