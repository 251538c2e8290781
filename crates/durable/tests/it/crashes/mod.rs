//! Processes that end at any point, and others that go on with their work.

mod crash_points;
mod evidence;
mod killed_processes;
mod ledger;
mod process;
mod workloads;

pub(crate) use evidence::check_nothing_left;
