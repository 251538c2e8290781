//! The driver against the emulator, over real sockets.

mod account_discovery;
mod bad_peers;
mod bulk;
mod caller_errors;
mod cancellation;
mod change_feed;
mod faulty_server;
mod load;
mod options;
mod queries;
mod retries;
mod runtimes;
mod secure;
mod seeded;
mod sessions;
mod silent_regions;
mod step_01_operations;
mod step_02_regions;
mod step_03_sessions_and_partitions;
mod step_04_hedging;
mod step_05_gateways;
mod step_06_sharding;
mod step_07_connections;
mod step_08_fault_injection;
mod steps;
mod test_account;
