//! The emulator from outside: an account asked through its handler as clients ask it over a socket,
//! and the sockets themselves.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod account;
mod authorization;
mod client;
mod containers;
mod databases;
mod offers;
mod partition_ranges;
mod permissions;
mod refusals;
mod transport;
