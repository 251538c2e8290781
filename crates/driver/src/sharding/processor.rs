//! How much of the machine this process uses: the edge to the operating system, and the arithmetic.
//!
//! In: processor time used so far, at two moments. Out: a share of all processors. Where the system does
//! not say, there is no reading, and nothing depends on one.

use std::time::Duration;
use std::{fs, thread};

/// Where the processor time of this process is read.
const STAT: &str = "/proc/self/stat";

/// One hundredth of a second: the unit of the file's times on every Linux there is.
const TICK: Duration = Duration::from_millis(10);

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
    let stat = fs::read_to_string(STAT).ok()?;
    Some(ProcessorTime { used: used(&stat)?, at })
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

/// User and system time, the fourteenth and fifteenth fields. The second is the program's name in
/// parentheses, which may itself contain both spaces and parentheses.
fn used(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut times = after_name.split_ascii_whitespace().skip(11);
    let mut next = || times.next()?.parse::<u32>().ok();
    Some(TICK * next()?.checked_add(next()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_are_found_behind_any_program_name() {
        for name in ["peri", "a b", "odd) name (here"] {
            let stat = format!("42 ({name}) S 1 42 42 0 -1 4194304 500 0 0 0 250 50 0 0 20 0 8 0 100 1 2\n");
            assert_eq!(used(&stat), Some(Duration::from_secs(3)), "{name}");
        }
        for broken in ["", "42 (peri)", "42 (peri) S 1 42 42 0 -1 4194304 500 0 0 0 x 50 0", "no name at all"]
        {
            assert_eq!(used(broken), None, "{broken}");
        }
    }

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
    fn on_linux_there_is_a_reading() {
        let reading = read(Duration::ZERO);
        assert_eq!(reading.is_some(), cfg!(target_os = "linux"), "{reading:?}");
    }
}
