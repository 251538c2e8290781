//! What the operating system knows about a process, and about the whole machine.

use std::fs;
use std::time::Duration;

/// A process by its id; `/proc` is the source, so this is Linux only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(pub(crate) u32);

impl Process {
    /// This very process.
    pub(crate) fn own() -> Process {
        Process(std::process::id())
    }

    /// Resident memory in bytes.
    pub(crate) fn resident(self) -> Result<u64, String> {
        let path = format!("/proc/{}/status", self.0);
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        Ok(kilobytes.ok_or_else(|| format!("{path} has no VmRSS line"))? * 1024)
    }

    /// Processor time used so far by all threads that are alive, to the nanosecond.
    pub(crate) fn processor_time(self) -> Result<Duration, String> {
        let path = format!("/proc/{}/task", self.0);
        let tasks = fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))?;
        let mut nanoseconds = 0;
        for task in tasks.flatten() {
            // A thread may end between the listing and the reading.
            let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else { continue };
            nanoseconds += text.split(' ').next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

/// Processor time of all processors together since the machine started, in the system's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    busy: u64,
    total: u64,
}

impl Machine {
    /// The counters as they are now.
    pub(crate) fn sample() -> Result<Machine, String> {
        let text = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
        Machine::parse(&text)
            .ok_or_else(|| "/proc/stat does not start with the line of all processors".to_owned())
    }

    /// Reads `cpu user nice system idle iowait …`; the two in the middle are time in which nothing ran.
    fn parse(text: &str) -> Option<Machine> {
        let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // Guest time, from the ninth on, is part of user time already.
        let ticks: Vec<u64> = fields.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
        let total = ticks.iter().sum();
        Some(Machine { busy: total - ticks.get(3)? - ticks.get(4)?, total })
    }

    /// The share of all processors that was busy between two samples.
    pub(crate) fn busy_since(self, earlier: Machine) -> f64 {
        (self.busy - earlier.busy) as f64 / (self.total - earlier.total).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, Process};

    #[test]
    fn busy_is_what_is_neither_idle_nor_waiting() {
        let read = |text| Machine::parse(text).expect("a line of all processors");
        let earlier = read("cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 1");
        let later = read("cpu  40 10 20 140 10 0 0 0 7 0\n");
        assert!((later.busy_since(earlier) - 0.5).abs() < 1e-9);
        assert_eq!(Machine::parse("intr 1"), None);
    }

    #[test]
    fn this_process_has_memory_and_has_used_the_processor() {
        assert!(Process::own().resident().expect("a resident size") > 100_000);
        let before = Process::own().processor_time().expect("a time");
        let mut sum = 0_u64;
        while Process::own().processor_time().expect("a time") == before {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
