//! The provider against an account, over real sockets.

mod crashes;
mod factory;
mod large_turns;
mod leases;
mod running;
mod samples;
mod sessions;
mod stress;
mod validation;
