//! The driver against the emulator, over real sockets.

mod bad_peers;
mod bulk;
mod cancellation;
mod change_feed;
mod faults;
mod items;
mod lab;
mod liar;
mod load;
mod queries;
mod regions;
mod retries;
mod seeded;
mod sharding;
mod step_05_gateways;
