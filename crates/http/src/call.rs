//! One call: when it began, until when it may last, and its record.

use std::error::Error as StdError;
use std::fmt;
use std::time::{Duration, Instant};

use crate::clock;
use crate::deadline;
use crate::error::{Error, ErrorKind};
use crate::exchange::{self, Exchange, Protocol, Reporter, Step};

/// One call, from the moment the client took it until the last byte of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    started: Instant,
    deadline: Option<Instant>,
    protocol: Option<Protocol>,
    reporter: Reporter,
    pub(crate) record: Exchange,
}

impl Call {
    /// Begins a call within what the scope around it wants.
    pub(crate) fn begin(lasts_at_most: Option<Duration>) -> Self {
        let started = clock::now();
        let wanted = exchange::wanted();
        Call {
            started,
            deadline: deadline::earlier(wanted.deadline, deadline::after(started, lasts_at_most)),
            protocol: wanted.protocol,
            reporter: exchange::begin(),
            record: Exchange::begun(),
        }
    }

    /// When it must be over.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether it should be over by now.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// The only protocol the caller allows.
    pub(crate) fn protocol(&self) -> Option<Protocol> {
        self.protocol
    }

    /// How long after its beginning `now` is.
    pub(crate) fn offset(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    /// Tells the scope around it how things are.
    pub(crate) fn report(&self) {
        self.reporter.report(&self.record);
    }

    /// Ends it with an error.
    pub(crate) fn fail(&mut self, failure: Failure, target: &dyn fmt::Display) -> Error {
        let Failure { kind, step, cause } = failure;
        self.record.failed = Some(step);
        self.record.refused = kind == ErrorKind::Refused;
        self.report();
        let error = Error::new(kind, target.to_string(), self.record);
        match cause {
            Some(cause) => error.because(cause),
            None => error,
        }
    }
}

/// What went wrong, before it is known in which call.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    pub(crate) step: Step,
    pub(crate) cause: Option<Cause>,
}

pub(crate) type Cause = Box<dyn StdError + Send + Sync>;

impl Failure {
    pub(crate) fn new(kind: ErrorKind, step: Step) -> Self {
        Failure { kind, step, cause: None }
    }

    pub(crate) fn because(mut self, cause: impl Into<Cause>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    pub(crate) fn timed_out(step: Step) -> Self {
        Failure::new(ErrorKind::TimedOut, step)
    }
}
