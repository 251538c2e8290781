//! The provider against an account, over real sockets.

mod crashes;
mod factory;
mod running;
mod samples;
mod sessions;
mod stress;
mod validation;
