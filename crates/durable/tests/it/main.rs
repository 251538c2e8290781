//! The provider against an account, over real sockets.

#![allow(
    clippy::disallowed_methods,
    reason = "the tests of crashes and outages measure how long recovery takes"
)]
#![allow(clippy::print_stdout, reason = "seeds and figures of long tests are printed")]

mod bad_input;
mod crashes;
mod factory;
mod large_turns;
mod leases;
mod outages;
mod replay;
mod retention;
mod running;
mod samples;
mod sessions;
mod stress;
mod validation;
