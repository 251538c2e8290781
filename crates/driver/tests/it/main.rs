//! The driver against the emulator, over real sockets.

mod bulk;
mod cancellation;
mod change_feed;
mod faults;
mod items;
mod lab;
mod load;
mod queries;
mod regions;
mod retries;
mod seeded;
mod sharding;
