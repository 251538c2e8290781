//! Signals: the first one requests a clean stop, the second one ends the process at once.

use std::io;

/// The exit code after a second signal, as shells use it for an interrupted program.
const INTERRUPTED: i32 = 130;

/// Listens for the signals that request a stop.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl Signals {
    /// Starts listening; no signal after this call is missed. Must be called inside a Tokio runtime.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Starts listening; no signal after this call is missed. Must be called inside a Tokio runtime.
    #[cfg(windows)]
    pub(crate) fn listen() -> io::Result<Signals> {
        Ok(Signals { interrupt: tokio::signal::windows::ctrl_c()? })
    }

    /// Waits for a signal that requests a stop.
    pub(crate) async fn stop_requested(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(windows)]
        self.interrupt.recv().await;
    }

    /// Ends the process without a clean stop when the next signal arrives.
    pub(crate) fn exit_on_next(mut self) {
        tokio::spawn(async move {
            self.stop_requested().await;
            std::process::exit(INTERRUPTED);
        });
    }
}
