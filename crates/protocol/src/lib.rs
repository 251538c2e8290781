//! The Cosmos DB wire as data.

pub mod container;
pub mod headers;
pub mod lsn;
pub mod partition;
pub mod status;
