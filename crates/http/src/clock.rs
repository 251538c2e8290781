//! The one place that reads time.
#![allow(clippy::disallowed_methods, reason = "this file is where the real clock is read")]

use std::time::Instant;

/// What time it is, on a clock that never goes back: tokio's, which tests can pause.
#[cfg(feature = "client")]
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// What time it is, on a clock that never goes back.
#[cfg(not(feature = "client"))]
pub(crate) fn now() -> Instant {
    Instant::now()
}
