//! How much of the machine this process uses: the edge to the operating system, and the arithmetic.
//!
//! In: processor time used so far, at two moments. Out: a share of all processors. Linux, macOS and FreeBSD have a
//! clock for it. Where the system does not say (Windows), there is no reading, and shards are judged as on an idle
//! machine: one that is slow because the process is busy may be replaced for nothing.

use std::thread;
use std::time::Duration;

/// Processor time used by this process up to a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessorTime {
    /// Used by all threads together.
    pub(super) used: Duration,
    /// When it was read.
    pub(super) at: Duration,
}

/// Reads the time used so far. `None` on systems that do not say.
pub(super) fn read(at: Duration) -> Option<ProcessorTime> {
    Some(ProcessorTime { used: used()?, at })
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd", target_vendor = "apple"))]
fn used() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).ok()
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd", target_vendor = "apple")))]
fn used() -> Option<Duration> {
    None
}

/// How many processors there are to use.
pub(super) fn count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Which share of `processors` was used between two readings; `None` when no time has passed.
pub(super) fn share(earlier: ProcessorTime, later: ProcessorTime, processors: usize) -> Option<f64> {
    let elapsed = later.at.checked_sub(earlier.at).filter(|elapsed| !elapsed.is_zero())?;
    let used = later.used.saturating_sub(earlier.used);
    Some((used.as_secs_f64() / (elapsed.as_secs_f64() * processors.max(1) as f64)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_all_processors() {
        let at = |used_ms, at_ms| ProcessorTime {
            used: Duration::from_millis(used_ms),
            at: Duration::from_millis(at_ms),
        };
        assert_eq!(share(at(0, 0), at(1_800, 1_000), 2), Some(0.9));
        assert_eq!(share(at(500, 0), at(500, 1_000), 2), Some(0.0));
        assert_eq!(share(at(0, 0), at(9_000, 1_000), 2), Some(1.0), "rounding never exceeds the whole");
        assert_eq!(share(at(0, 5), at(100, 5), 2), None, "no time passed");
    }

    #[test]
    fn work_is_seen_in_the_next_reading_where_the_system_has_one() {
        let first = read(Duration::ZERO);
        assert_eq!(first.is_none(), cfg!(windows), "every other system we support has a reading");
        let Some(before) = first else { return };
        // Ends when the clock of the process has moved, which work moves.
        let mut number = 1_u64;
        while read(Duration::ZERO).is_some_and(|now| now.used <= before.used) {
            number = std::hint::black_box(number.wrapping_mul(31));
        }
    }
}
