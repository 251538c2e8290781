//! The error of a failed request: its kind, its message, and the trace of the request up to the failure.

use std::error::Error as StdError;
use std::fmt;

use crate::trace::{RequestTrace, Sent, Step};

/// Why a request failed, in which step, and whether it had been sent.
///
/// Through `azure_core`'s trait it is the source of an error of kind `Io`; [`Error::find_in`] finds it there.
pub struct Error(Box<ErrorImpl>);

struct ErrorImpl {
    kind: ErrorKind,
    target: Box<str>,
    trace: RequestTrace,
    source: Option<BoxError>,
}

/// Any error, boxed: the source of another one.
pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a request failed, in terms of what the caller can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request cannot be sent as it is: correct it.
    Invalid,
    /// No connection could be made: retry later, or against another host.
    Unreachable,
    /// The peer's certificate is not valid for this host: check the host name, or the trusted root certificates.
    Untrusted,
    /// A deadline passed: allow more time, or send the request to another host.
    TimedOut,
    /// The connection was closed before the response was complete: check [`Error::sent`] before a retry.
    Closed,
    /// The peer did not process the request: it can be retried on another connection.
    Refused,
    /// The response is not valid HTTP, or exceeds the limits: a retry would fail in the same way.
    Malformed,
    /// The stream of the request's body returned an error while it was being sent.
    RequestBody,
}

impl ErrorKind {
    const fn description(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "the request is not valid",
            ErrorKind::Unreachable => "no connection could be made",
            ErrorKind::Untrusted => "the certificate is not trusted",
            ErrorKind::TimedOut => "the deadline passed",
            ErrorKind::Closed => "the connection was closed",
            ErrorKind::Refused => "the peer refused to process the request",
            ErrorKind::Malformed => "the response is not valid",
            ErrorKind::RequestBody => "the request's body failed",
        }
    }
}

impl Error {
    /// Creates the error of a request to `target` (`https://host:port`) that failed where `trace` says.
    ///
    /// Public for other implementations of the client, such as test doubles.
    pub fn new(kind: ErrorKind, target: impl Into<Box<str>>, trace: RequestTrace) -> Self {
        Error(Box::new(ErrorImpl { kind, target: target.into(), trace, source: None }))
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The kind of the error, which says what the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The step that failed.
    pub fn step(&self) -> Step {
        self.0.trace.failed_step.unwrap_or(Step::Prepare)
    }

    /// Whether the request had been sent when it failed.
    pub fn sent(&self) -> Sent {
        self.0.trace.sent
    }

    /// Whether the request cannot have had an effect, so that even a write can be retried.
    pub fn safe_to_repeat(&self) -> bool {
        self.0.trace.safe_to_repeat()
    }

    /// Whether a deadline passed.
    pub fn is_timeout(&self) -> bool {
        self.0.kind == ErrorKind::TimedOut
    }

    /// The trace of the request up to the failure.
    pub fn trace(&self) -> &RequestTrace {
        &self.0.trace
    }

    /// The scheme, host and port that the request was sent to.
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// Finds the error of this crate in the chain of sources of `error`.
    ///
    /// ```
    /// use perihelion_http::trace::RequestTrace;
    /// use perihelion_http::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::TimedOut, "https://localhost:8081", RequestTrace::started());
    /// let error = azure_core::Error::from(error).with_context("reading the account");
    /// assert!(Error::find_in(&error).is_some_and(Error::is_timeout));
    /// ```
    pub fn find_in<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
        std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorImpl { kind, target, trace, source } = &*self.0;
        write!(f, "{target}: {} while {} ({})", kind.description(), self.step(), trace.sent)?;
        match source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorImpl { kind, target, trace, source } = &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("target", target)
            .field("trace", trace)
            .field("source", source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| &**source as &(dyn StdError + 'static))
    }
}

impl From<Error> for azure_core::Error {
    fn from(error: Error) -> Self {
        azure_core::Error::new(azure_core::error::ErrorKind::Io, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn refused() -> Error {
        let mut trace = RequestTrace::started();
        trace.failed_step = Some(Step::Connect);
        Error::new(ErrorKind::Unreachable, "http://localhost:8081", trace)
            .with_source(io::Error::from(io::ErrorKind::ConnectionRefused))
    }

    #[test]
    fn the_message_names_target_kind_step_sent_status_and_source() {
        assert_eq!(
            refused().to_string(),
            "http://localhost:8081: no connection could be made while connecting (not sent): connection refused"
        );
    }

    #[test]
    fn it_is_found_in_the_source_chain_of_azure_errors() {
        let error = azure_core::Error::from(refused()).with_context("inner").with_context("outer");
        assert_eq!(*error.kind(), azure_core::error::ErrorKind::Io);
        let found = Error::find_in(&error).expect("ours is inside");
        assert_eq!((found.step(), found.sent()), (Step::Connect, Sent::NotSent));
        assert!(Error::find_in(&io::Error::other("not ours")).is_none());
    }

    #[test]
    fn it_has_the_size_of_a_pointer() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
