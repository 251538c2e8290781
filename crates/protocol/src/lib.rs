//! The Cosmos DB wire as data.
