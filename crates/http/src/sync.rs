//! The locks of the pool, in one place: a test compiles the pool with others in their stead, whose every
//! schedule it chooses (`tests/schedules`).

pub(crate) use std::sync::{Arc, Mutex, MutexGuard, RwLock};
