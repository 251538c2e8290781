//! The pool under many thread schedules.
//!
//! The pool is compiled once more, with shuttle's locks in place of std's (the module `sync` below). shuttle then decides
//! which thread runs next. A failure prints the schedule that reproduces it.
#![allow(dead_code, unused_imports, unreachable_pub, reason = "the pool is compiled whole and used in part")]

#[path = "../../src/origin.rs"]
pub mod origin;
#[path = "../../src/pool/mod.rs"]
pub mod pool;

mod sync {
    pub(crate) use shuttle::sync::{Arc, Mutex, MutexGuard, RwLock};

    pub(crate) fn ignore_poison<G>(guard: std::sync::LockResult<G>) -> G {
        guard.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

mod races;
