//! The provider against an account, over real sockets.

mod factory;
mod validation;
