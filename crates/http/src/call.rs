//! One call of the client: its start, its deadline, its trace, and the error it ends with.

use std::fmt;
use std::time::{Duration, Instant};

use crate::clock;
use crate::deadline;
use crate::error::{BoxError, Error, ErrorKind};
use crate::trace::{self, Protocol, RequestTrace, Step, TraceReporter};

/// The `tracing` target of all spans of the client.
pub(crate) const TRACING_TARGET: &str = "perihelion_http";

/// One call, from the moment the client accepted the request until the last byte of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    started: Instant,
    deadline: Option<Instant>,
    protocol: Option<Protocol>,
    reporter: TraceReporter,
    pub(crate) trace: RequestTrace,
}

impl Call {
    /// Starts a call that ends after `timeout`, or earlier if the surrounding trace scope has an earlier deadline.
    pub(crate) fn start(timeout: Option<Duration>) -> Self {
        let started = clock::now();
        let options = trace::request_options();
        Call {
            started,
            deadline: deadline::earlier(options.deadline, deadline::after(started, timeout)),
            protocol: options.protocol,
            reporter: trace::start_trace(),
            trace: RequestTrace::started(),
        }
    }

    /// When the call must be complete, response body included.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether the deadline of the call has passed at `now`.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The only protocol that the caller allows, if it allows only one.
    pub(crate) fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// The time from the start of the call until `now`.
    pub(crate) fn offset(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// Copies the trace into the surrounding trace scope.
    pub(crate) fn report(&self) {
        self.reporter.report(&self.trace);
    }

    /// Ends the call: notes the failed step in the trace and makes the error that the caller gets.
    pub(crate) fn fail(&mut self, error: StepError, target: &dyn fmt::Display) -> Error {
        let StepError { kind, step, source } = error;
        self.trace.failed_step = Some(step);
        self.trace.refused = kind == ErrorKind::Refused;
        self.report();
        let error = Error::new(kind, target.to_string(), self.trace);
        match source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

/// The error of one step, which [`Call::fail`] turns into the error of the call.
#[derive(Debug)]
pub(crate) struct StepError {
    pub(crate) kind: ErrorKind,
    pub(crate) step: Step,
    pub(crate) source: Option<BoxError>,
}

impl StepError {
    pub(crate) fn new(kind: ErrorKind, step: Step) -> Self {
        StepError { kind, step, source: None }
    }

    pub(crate) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn timed_out(step: Step) -> Self {
        StepError::new(ErrorKind::TimedOut, step)
    }
}
