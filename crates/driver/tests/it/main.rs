//! The driver against the emulator, over real sockets.

mod change_feed;
mod items;
mod lab;
mod queries;
mod regions;
mod sharding;
