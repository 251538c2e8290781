//! Why a request failed: a kind for the program, a story for the person, and how far it had come.

use std::error::Error as StdError;
use std::fmt;

use crate::exchange::{Exchange, Sent, Step};

/// Why a request failed, in which step, and whether it had left.
///
/// Through `azure_core`'s trait it is the source of an error of kind `Io`; [`Error::of`] finds it there.
pub struct Error(Box<Story>);

struct Story {
    kind: ErrorKind,
    target: Box<str>,
    exchange: Exchange,
    source: Option<Cause>,
}

type Cause = Box<dyn StdError + Send + Sync>;

/// Why a request failed, in terms of what the caller can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request cannot be sent as it is: correct it.
    Invalid,
    /// No connection could be made: try again later, or elsewhere.
    Unreachable,
    /// The peer's certificate does not prove that it is who it should be: check the name, or the roots.
    Untrusted,
    /// A deadline passed: allow more time, or try elsewhere.
    TimedOut,
    /// The connection ended before the response was complete: look at [`Error::sent`] before trying again.
    Closed,
    /// The peer did not look at the request: it may be repeated, on another connection.
    Refused,
    /// What the peer sent is not HTTP, or more than the limits allow: there is no use in trying again.
    Malformed,
    /// The request's own body failed while it was being sent.
    RequestBody,
}

impl ErrorKind {
    const fn happened(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "the request is not valid",
            ErrorKind::Unreachable => "no connection could be made",
            ErrorKind::Untrusted => "the certificate is not trusted",
            ErrorKind::TimedOut => "the time was up",
            ErrorKind::Closed => "the connection was closed",
            ErrorKind::Refused => "the peer refused to look at the request",
            ErrorKind::Malformed => "the response is not valid",
            ErrorKind::RequestBody => "the request's body failed",
        }
    }
}

impl Error {
    /// An error of a request to `target` (`https://host:port`) that had come as far as `exchange` says.
    ///
    /// For those who stand in for the client: its own errors are made in the same way.
    pub fn new(kind: ErrorKind, target: impl Into<Box<str>>, exchange: Exchange) -> Self {
        Error(Box::new(Story { kind, target: target.into(), exchange, source: None }))
    }

    /// The same error, with what caused it.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The step that failed.
    pub fn step(&self) -> Step {
        self.0.exchange.failed.unwrap_or(Step::Prepare)
    }

    /// Whether the request had left.
    pub fn sent(&self) -> Sent {
        self.0.exchange.sent
    }

    /// Whether the request cannot have had an effect, so that even a write may simply be repeated.
    pub fn safe_to_repeat(&self) -> bool {
        self.0.exchange.safe_to_repeat()
    }

    /// Whether a deadline passed.
    pub fn is_timeout(&self) -> bool {
        self.0.kind == ErrorKind::TimedOut
    }

    /// How far the request had come.
    pub fn exchange(&self) -> &Exchange {
        &self.0.exchange
    }

    /// Where the request was to go: scheme, host and port.
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// The error of this crate inside `error`, however often it was wrapped.
    ///
    /// ```
    /// use perihelion_http::exchange::Exchange;
    /// use perihelion_http::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::TimedOut, "https://localhost:8081", Exchange::begun());
    /// let error = azure_core::Error::from(error).with_context("reading the account");
    /// assert!(Error::of(&error).is_some_and(Error::is_timeout));
    /// ```
    pub fn of<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
        std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Story { kind, target, exchange, source } = &*self.0;
        write!(f, "{target}: {} while {} ({})", kind.happened(), self.step(), exchange.sent)?;
        match source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Story { kind, target, exchange, source } = &*self.0;
        f.debug_struct("Error")
            .field("kind", kind)
            .field("target", target)
            .field("exchange", exchange)
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
        let mut exchange = Exchange::begun();
        exchange.failed = Some(Step::Connect);
        Error::new(ErrorKind::Unreachable, "http://localhost:8081", exchange)
            .because(io::Error::from(io::ErrorKind::ConnectionRefused))
    }

    #[test]
    fn the_story_says_where_what_when_and_whether_it_left() {
        assert_eq!(
            refused().to_string(),
            "http://localhost:8081: no connection could be made while connecting (not sent): connection refused"
        );
    }

    #[test]
    fn it_is_found_inside_azure_errors() {
        let error = azure_core::Error::from(refused()).with_context("once").with_context("twice");
        assert_eq!(*error.kind(), azure_core::error::ErrorKind::Io);
        let found = Error::of(&error).expect("ours is inside");
        assert_eq!((found.step(), found.sent()), (Step::Connect, Sent::NotSent));
        assert!(Error::of(&io::Error::other("not ours")).is_none());
    }

    #[test]
    fn it_is_small_enough_to_return() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
