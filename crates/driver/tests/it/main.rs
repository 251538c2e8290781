//! The driver against the emulator, over real sockets.
