//! The guarantees that a simulation checks, and their violations.

use std::fmt;

/// The guarantees that are checked. Each has its own name, so that a shorter run counts as the same failure
/// only if it violates the same guarantee.
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
            Guarantee::WriteOutcome => "a write has the status and the effect that the current items imply",
            Guarantee::Session => "a session reads its own writes and never an older state",
            Guarantee::Prefix => "a response contains exactly the state at the LSN that it states",
            Guarantee::Newest => "the write region and strong reads return all acknowledged writes",
            Guarantee::Staleness => "a bounded read is no staler than its bound",
            Guarantee::Progress => "LSNs and session tokens of a region never decrease",
            Guarantee::FeedOrder => "a change feed delivers changes in order, none twice, none missing",
            Guarantee::FeedComplete => "a change feed that is read to its end has delivered everything",
            Guarantee::Query => "a query returns the matching items, each row once",
            Guarantee::Layout => "partition key ranges cover the EPK space without gaps",
            Guarantee::Convergence => "regions are equal once everything is replicated",
            Guarantee::NoLostWrite => "an acknowledged write is only replaced by a concurrent or later one",
            Guarantee::Durability => "acknowledged writes survive a restart",
            Guarantee::Response => "a response has an expected status",
            Guarantee::NoPanic => "nothing panics",
        }
    }
}

/// A violated guarantee, with details.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) guarantee: Guarantee,
    pub(crate) details: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "violated: {}\n  {}", self.guarantee.description(), self.details)
    }
}

/// Fails with a violated guarantee unless `holds`.
pub(crate) fn ensure(
    holds: bool,
    promise: Guarantee,
    details: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure { guarantee: promise, details: details() }) }
}
