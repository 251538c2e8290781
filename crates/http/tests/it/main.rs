//! The crate from outside: the pool on plain values, the client against servers on loopback.

mod bad_http2_peers;
mod bad_peers;
mod cancellation;
mod certificates;
mod client;
mod http2;
mod observe;
mod pool;
mod reuse;
mod server;
