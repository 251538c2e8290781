//! The pool under every schedule that a seed can choose.
//!
//! The pool is compiled once more, with locks whose schedule the test decides (`sync` below stands in for
//! the crate's own). A failure prints the schedule that brings it back.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "the pool is compiled whole and used in part")]

#[path = "../../src/authority.rs"]
pub mod authority;
#[path = "../../src/pool/mod.rs"]
pub mod pool;

mod sync {
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard, RwLock};
}

mod worlds;
