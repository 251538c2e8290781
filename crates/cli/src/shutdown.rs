//! The first signal asks for a clean stop, the second leaves.

use std::io;

/// Exit code after a second signal: what shells use for an interrupted program.
const INTERRUPTED: i32 = 130;

/// Listens for the signals that mean stop.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl Signals {
    /// From here on no signal is missed. Must be called inside a Tokio runtime.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// From here on no signal is missed. Must be called inside a Tokio runtime.
    #[cfg(windows)]
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals { interrupt: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for a signal.
    pub(crate) async fn stop_requested(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }

    /// Leaves without a clean stop if another signal arrives while one is under way.
    pub(crate) fn leave_at_once_on_the_next(mut self) {
        tokio::spawn(async move {
            self.stop_requested().await;
            std::process::exit(INTERRUPTED);
        });
    }
}
