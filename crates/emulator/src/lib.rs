//! A Cosmos DB account on one machine.
