//! Diagnostics of an operation: every attempt, and why the next step was taken.
//!
//! During an operation a [`Recorder`] is appended to: one vector, no text. Afterwards it is a
//! [`Diagnostics`], which becomes text only when asked: one line ([`Diagnostics::summary`]), JSON
//! ([`Diagnostics::to_json`]) or attributes under OpenTelemetry's names
//! ([`Diagnostics::attributes`]). However often an operation is retried, it keeps its first and its
//! last attempts and counts those between, so that its size is bounded. Totals of all operations
//! are in [`metrics`].

mod attempt_record;
mod json;
pub mod metrics;
mod recent;
mod recorder;
mod summary;

use std::time::Duration;

pub use attempt_record::{AttemptOutcome, AttemptRecord, ExecutionContext, SendRecord};
pub(crate) use recent::Recent;
pub use recorder::{ATTEMPTS_FIRST_MAX, ATTEMPTS_LAST_MAX, Recorder, SentTo};
pub use summary::Summary;

/// The diagnostics of one operation.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    operation: &'static str,
    elapsed: Duration,
    /// The first attempts, then the last ones, in the order they were recorded.
    attempts: Vec<AttemptRecord>,
    /// How many of `attempts` are the first ones, when some are missing after them.
    first: usize,
    totals: Totals,
}

/// Totals over all attempts, those that were not kept included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// How many attempts there were.
    pub attempts: u32,
    /// Request units of all responses that were received.
    pub charge: f64,
    /// Responses with status 429.
    pub throttled: u32,
    /// Second attempts beside a slow one.
    pub hedges: u32,
    /// Attempts in another region than the one before.
    pub failovers: u32,
    /// Attempts that were dropped before their response: what they cost is not known.
    pub abandoned: u32,
}

impl Diagnostics {
    /// The name of the operation.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// From the call to the response.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// The attempts that were kept: the first, and the last.
    pub fn attempts(&self) -> &[AttemptRecord] {
        &self.attempts
    }

    /// How many attempts between the first and the last were not kept.
    pub fn omitted(&self) -> u32 {
        self.totals.attempts.saturating_sub(u32::try_from(self.attempts.len()).unwrap_or(u32::MAX))
    }

    /// The totals over all attempts.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The short form for logs: one line.
    pub fn summary(&self) -> Summary<'_> {
        Summary(self)
    }

    /// The first attempts and, when some are missing between them, the last.
    fn parts(&self) -> (&[AttemptRecord], &[AttemptRecord]) {
        if self.omitted() == 0 { (&self.attempts, &[]) } else { self.attempts.split_at(self.first) }
    }
}

#[cfg(test)]
pub(crate) mod tests;
