//! The only file that reads the clock.
#![allow(clippy::disallowed_methods, reason = "this file is where the real clock is read")]

use std::time::Instant;

/// Reads the monotonic clock: tokio's, which tests can pause.
#[cfg(feature = "client")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Reads the monotonic clock of the system.
#[cfg(not(feature = "client"))]
pub(crate) fn now() -> Instant {
    Instant::now()
}
