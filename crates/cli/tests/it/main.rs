//! Tests of the built program, run as a process.

mod binary;
mod cert;
mod chaos;
mod client;
mod clock;
mod commands;
mod control;
mod data_dir;
mod durable;
mod fixtures;
mod foreign_text;
mod help;
mod kill;
mod kill_damage;
mod kill_multi_write;
mod kill_restore;
mod query;
mod test_account;
mod up;
