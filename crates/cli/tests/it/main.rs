//! The built program, run as a person or a script runs it.

mod binary;
mod cert;
mod client;
mod clock;
mod control;
mod data_dir;
mod fixtures;
mod help;
mod kill;
mod lab;
mod up;
