//! The provider against an account, over real sockets.

mod factory;
mod running;
mod samples;
mod sessions;
mod stress;
mod validation;
