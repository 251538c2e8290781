//! What can turn out not to hold.

use std::fmt;

/// The promises that are checked. Each has its own name, so that a shorter history counts as the same
/// failure only if it breaks the same promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    WriteOutcome,
    Session,
    Prefix,
    Newest,
    Staleness,
    Progress,
    FeedOrder,
    FeedComplete,
    Query,
    Layout,
    Convergence,
    NothingLost,
    Kept,
    Answer,
    NoPanic,
}

impl Promise {
    fn words(self) -> &'static str {
        match self {
            Promise::WriteOutcome => "a write is answered, and has the effect, that the items there call for",
            Promise::Session => "a session reads its own writes and never goes back",
            Promise::Prefix => "what is shown is exactly what had happened by the LSN that is stated",
            Promise::Newest => "the region that writes, and strong reads, show everything acknowledged",
            Promise::Staleness => "a bounded read is no staler than agreed",
            Promise::Progress => "LSNs and session tokens of a region never go back",
            Promise::FeedOrder => "a change feed tells changes in order, none twice, none missing",
            Promise::FeedComplete => "a change feed that is read to its end has told everything",
            Promise::Query => "a query finds what the items there call for, each row once",
            Promise::Layout => "partition key ranges cover the ring without gaps",
            Promise::Convergence => "regions agree when everything has arrived",
            Promise::NothingLost => "an acknowledged write gives way only to one that did not know it",
            Promise::Kept => "what was acknowledged is there when the account is opened again",
            Promise::Answer => "a request is answered with a status it may have",
            Promise::NoPanic => "nothing panics",
        }
    }
}

/// A promise that was broken, and how.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) promise: Promise,
    pub(crate) details: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken: {}\n  {}", self.promise.words(), self.details)
    }
}

/// Breaks a promise unless `holds`.
pub(crate) fn ensure(holds: bool, promise: Promise, details: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure { promise, details: details() }) }
}
