//! What the operating system knows about a process: memory and processor time.

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

#[cfg(test)]
mod tests {
    use super::Process;

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
