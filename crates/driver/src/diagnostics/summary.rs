//! Diagnostics as one line, for logs.

use std::fmt;
use std::time::Duration;

use super::Diagnostics;
use super::attempt_record::ExecutionContext;
use super::attempt_record::{AttemptOutcome, AttemptRecord};
use perihelion_http::trace::Sent;

/// One line: the operation, for how long, at which cost, and every attempt that was kept.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a>(pub(super) &'a Diagnostics);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let diagnostics = self.0;
        let totals = diagnostics.totals;
        let operation = if diagnostics.operation.is_empty() { "nothing" } else { diagnostics.operation };
        write!(f, "{operation} in {}, {:.2} RU", ShownDuration(diagnostics.elapsed), totals.charge)?;
        let (first, last) = diagnostics.parts();
        let mut separator = ": ";
        for attempt in first {
            write!(f, "{separator}{}", AttemptSummary(attempt))?;
            separator = " → ";
        }
        if diagnostics.omitted() > 0 {
            write!(f, " → {} more", diagnostics.omitted())?;
        }
        last.iter().try_for_each(|attempt| write!(f, " → {}", AttemptSummary(attempt)))
    }
}

struct AttemptSummary<'a>(&'a AttemptRecord);

impl fmt::Display for AttemptSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempt = self.0;
        write!(f, "{}", attempt.endpoint.region())?;
        if matches!(attempt.context, ExecutionContext::Hedging | ExecutionContext::Probe) {
            write!(f, " ({})", attempt.context.name())?;
        }
        if let Some(diversion) = &attempt.diversion {
            write!(f, " (not {}: {})", diversion.region, diversion.cause)?;
        }
        let (_, took) = attempt.outcome.span();
        match &attempt.outcome {
            AttemptOutcome::Abandoned { .. } => write!(f, " abandoned")?,
            AttemptOutcome::Sent(record) => match (record.status, record.sent) {
                (Some((status, sub_status)), _) if sub_status.is_none() => write!(f, " {}", status.0)?,
                (Some((status, sub_status)), _) => write!(f, " {}/{sub_status}", status.0)?,
                (None, Sent::NotSent) => write!(f, " not sent")?,
                (None, Sent::MaybeSent) => write!(f, " no response, maybe sent")?,
                (None, Sent::Sent) => write!(f, " no response, sent")?,
            },
        }
        write!(f, " {}", ShownDuration(took))
    }
}

/// A duration as people read it: three digits that matter.
pub(super) struct ShownDuration(pub(super) Duration);

impl fmt::Display for ShownDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_secs_f64() * 1000.0;
        match milliseconds {
            ..10.0 => write!(f, "{milliseconds:.2} ms"),
            ..100.0 => write!(f, "{milliseconds:.1} ms"),
            ..1000.0 => write!(f, "{milliseconds:.0} ms"),
            _ => write!(f, "{:.2} s", milliseconds / 1000.0),
        }
    }
}
