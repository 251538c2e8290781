//! Time on the wall, and time on the processor.
#![allow(clippy::disallowed_methods, reason = "this file is where the clocks are read")]

use std::fs;
use std::time::{Duration, Instant};

/// What time it is.
pub fn now() -> Instant {
    Instant::now()
}

/// Processor time used so far by all threads of this process that are alive, to the nanosecond.
pub fn processor_time() -> Duration {
    let mut nanoseconds = 0;
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        // A thread may end between the listing and the reading.
        let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    }
    Duration::from_nanos(nanoseconds)
}
