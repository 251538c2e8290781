//! Runs every scenario over real sockets, in a few seconds each.

mod checks;
mod scenarios;
