//! What can turn out not to hold.

use std::fmt;

/// The guarantee that are checked. Each has its own name, so that a shorter history counts as the same
/// failure only if it breaks the same guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarantee {
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
    NoLostWrite,
    Durability,
    Response,
    NoPanic,
}

impl Guarantee {
    fn description(self) -> &'static str {
        match self {
            Guarantee::WriteOutcome => {
                "a write is answered, and has the effect, that the items there call for"
            }
            Guarantee::Session => "a session reads its own writes and never goes back",
            Guarantee::Prefix => "what is shown is exactly what had happened by the LSN that is stated",
            Guarantee::Newest => "the region that writes, and strong reads, show everything acknowledged",
            Guarantee::Staleness => "a bounded read is no staler than agreed",
            Guarantee::Progress => "LSNs and session tokens of a region never go back",
            Guarantee::FeedOrder => "a change feed tells changes in order, none twice, none missing",
            Guarantee::FeedComplete => "a change feed that is read to its end has told everything",
            Guarantee::Query => "a query finds what the items there call for, each row once",
            Guarantee::Layout => "partition key ranges cover the ring without gaps",
            Guarantee::Convergence => "regions agree when everything has arrived",
            Guarantee::NoLostWrite => "an acknowledged write gives way only to one that did not know it",
            Guarantee::Durability => "what was acknowledged is there when the account is opened again",
            Guarantee::Response => "a request is answered with a status it may have",
            Guarantee::NoPanic => "nothing panics",
        }
    }
}

/// A guarantee that was broken, and how.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) guarantee: Guarantee,
    pub(crate) details: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken: {}\n  {}", self.guarantee.description(), self.details)
    }
}

/// Breaks a guarantee unless `holds`.
pub(crate) fn ensure(
    holds: bool,
    promise: Guarantee,
    details: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure { guarantee: promise, details: details() }) }
}
