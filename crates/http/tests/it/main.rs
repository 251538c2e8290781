//! The public API: the pool with plain values, and the client against servers on the loopback interface.

mod cancellation;
mod certificates;
mod client;
mod connections;
mod faulty_http2_servers;
mod faulty_servers;
mod http2;
mod loopback_roots;
mod not_sent;
mod pool;
mod pool_events;
mod proxies;
mod reuse;
mod server;
mod stalling_peer;
