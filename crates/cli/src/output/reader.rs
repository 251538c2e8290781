//! Whether somebody still reads stdout, for commands that print until they are stopped.

use std::time::Duration;

/// Waits for a while, and returns early with `false` when the reader of stdout has gone.
#[cfg(unix)]
pub(crate) fn wait_while_read(duration: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;

    let stdout = std::io::stdout();
    // No event is asked for: errors and hang-ups are always reported.
    let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
    let timeout = Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    };
    match poll(&mut watched, Some(&timeout)) {
        Ok(_) => !watched[0].revents().intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL),
        Err(Errno::INTR) => true,
        Err(_) => {
            std::thread::sleep(duration);
            true
        }
    }
}

/// Waits for a while; here a reader that has gone is only noticed by the next line.
#[cfg(not(unix))]
pub(crate) fn wait_while_read(duration: Duration) -> bool {
    std::thread::sleep(duration);
    true
}
