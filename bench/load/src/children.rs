//! The processes this program started: none outlives it.
//!
//! Each ends when its [`OwnedChild`] is dropped. A signal that asks this program to end drops nothing, so a
//! thread waits for those and cleans up first. Only a kill that cannot be caught leaves anything.

use std::io;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

type Shared = Arc<Mutex<Child>>;

/// What is running now.
static RUNNING: Mutex<Vec<Shared>> = Mutex::new(Vec::new());

/// A process that ends with this value.
pub(crate) struct OwnedChild {
    child: Shared,
    id: u32,
}

impl OwnedChild {
    /// Starts `command`, whose output must be piped, and returns that pipe as well.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(OwnedChild, ChildStdout)> {
        // Held while the process starts: a signal in between would miss it.
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().expect("stdout is piped");
        let (id, child) = (child.id(), Arc::new(Mutex::new(child)));
        running.push(Arc::clone(&child));
        Ok((OwnedChild { child, id }, stdout))
    }

    /// The id of the process.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }
}

impl Drop for OwnedChild {
    fn drop(&mut self) {
        end(&self.child);
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|other| !Arc::ptr_eq(other, &self.child));
    }
}

fn end(child: &Shared) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = child.kill();
    let _ = child.wait();
}

/// From now on, a signal that asks this process to end ends its children and removes `file` first.
pub(crate) fn end_with_this_process(file: PathBuf) -> Result<(), String> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| format!("signals cannot be waited for: {error}"))?;
    // It waits for as long as the process lives.
    thread::spawn(move || {
        for signal in signals.forever() {
            // Never given back: nothing is started after this.
            let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
            running.iter().for_each(end);
            let _ = std::fs::remove_file(&file);
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_process_ends_with_its_owner() {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::piped());
        let (child, mut stdout) = OwnedChild::spawn(&mut command).expect("sleep exists");
        assert!(std::fs::exists(format!("/proc/{}", child.id())).expect("/proc can be read"));
        drop(child);
        // The pipe closes with the only process that holds its other end.
        assert_eq!(stdout.read(&mut [0]).expect("a closed pipe"), 0);
        assert!(RUNNING.lock().expect("no test panicked").is_empty());
    }
}
