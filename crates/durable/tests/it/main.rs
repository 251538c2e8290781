//! The provider against an account, over real sockets.

mod bad_input;
mod crashes;
mod factory;
mod large_turns;
mod leases;
mod outages;
mod running;
mod samples;
mod sessions;
mod stress;
mod validation;
