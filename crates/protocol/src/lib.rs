//! The Cosmos DB wire as data.

pub mod authorization;
pub mod container;
pub mod headers;
pub mod lsn;
pub mod partition;
pub mod partition_range;
pub mod resource_id;
pub mod resource_path;
pub mod session_token;
pub mod status;
