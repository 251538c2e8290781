//! The crate from outside: the pool on plain values, the client against servers on loopback.

mod bad_peers;
mod cancellation;
mod certificates;
mod client;
mod pool;
mod reuse;
mod server;
