//! The one place that reads time.

use std::time::{Instant, SystemTime};

/// The monotonic clock, for durations.
#[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The current date as the service wants it in `x-ms-date`.
#[expect(clippy::disallowed_methods, reason = "this is the place the rule points to")]
pub(crate) fn date() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}
