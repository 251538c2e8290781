//! Integration tests of the emulator: through its request handler, and over sockets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod access;
mod account;
mod authorization;
mod batches;
mod change_feed;
mod client;
mod compatibility;
mod concurrency;
mod containers;
mod control;
mod databases;
mod dotnet;
mod errors;
mod faults;
mod indexing;
mod items;
mod live;
mod long_queries;
mod malformed_requests;
mod multi_write;
mod offers;
mod pages;
mod partition_ranges;
mod permissions;
mod queries;
mod regions;
mod running;
mod snapshots;
mod split_waits;
mod splits;
mod throttling;
mod token_scope;
mod transport;
