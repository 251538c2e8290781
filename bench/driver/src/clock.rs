//! Time on the wall, and time on the processor.
#![allow(clippy::disallowed_methods, reason = "this file is where the clocks are read")]

use std::time::{Duration, Instant};

/// What time it is.
pub fn now() -> Instant {
    Instant::now()
}

/// Processor time used so far by this process, threads that have ended included, to the nanosecond.
pub fn processor_time() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}
