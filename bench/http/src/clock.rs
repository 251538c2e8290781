//! The only file that reads the clock: elapsed time and processor time.
#![allow(clippy::disallowed_methods, reason = "this file is where the clocks are read")]

use std::time::{Duration, Instant};

/// Reads the monotonic clock.
pub fn now() -> Instant {
    Instant::now()
}

/// The processor time of this process so far, including threads that have ended, in nanoseconds.
pub fn processor_time() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}
