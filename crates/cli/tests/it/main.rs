//! The built program, run as a person or a script runs it.

mod binary;
mod cert;
mod chaos;
mod client;
mod clock;
mod control;
mod data_dir;
mod fixtures;
mod help;
mod kill;
mod kill_mesh;
mod kill_restore;
mod lab;
mod up;
