//! The driver against the emulator, over real sockets.

mod items;
mod lab;
mod regions;
mod sharding;
