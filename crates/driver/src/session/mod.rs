//! Session tokens: which one a request carries, and what is recorded of responses.
//!
//! A [`ContainerSession`] holds the session tokens of one container, by partition key range. It lives
//! with the container's entry in the cache, so that a container recreated under its name starts with
//! an empty one. Whether a request carries a token at all ([`sends_token`]) is a pure decision.

mod store;

use protocol::account::ConsistencyLevel;
use protocol::partition_range::RangeId;

pub use store::ContainerSession;

use crate::options::{ConsistencySettings, ReadConsistencyStrategy};

/// Which part of a container a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionScope<'a> {
    /// One physical partition, and those it came from.
    Range {
        /// The id of the partition key range.
        id: RangeId,
        /// The ids of the ranges it was split or merged from, oldest ancestors included.
        parents: &'a [RangeId],
    },
    /// Some partition, or several, which only the gateway knows.
    Unknown,
}

/// Whether a request carries a session token: reads under session consistency, and writes where every
/// region takes them, since only there can a write reach a region that is behind.
pub(crate) fn sends_token(
    settings: &ConsistencySettings,
    account: ConsistencyLevel,
    is_read: bool,
    multiple_write_regions: bool,
) -> bool {
    if !settings.track_sessions {
        return false;
    }
    let session = match settings.read_strategy {
        ReadConsistencyStrategy::Default => account == ConsistencyLevel::Session,
        ReadConsistencyStrategy::Session => true,
        ReadConsistencyStrategy::Eventual
        | ReadConsistencyStrategy::LatestCommitted
        | ReadConsistencyStrategy::GlobalStrong => false,
    };
    session && (is_read || multiple_write_regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_where_it_can_matter() {
        use ConsistencyLevel::{BoundedStaleness, Eventual, Session, Strong};
        use ReadConsistencyStrategy as Strategy;
        // strategy, tracked, account, read, multi-write, sent
        for (strategy, tracked, account, read, multi_write, sent) in [
            (Strategy::Default, true, Session, true, false, true),
            (Strategy::Default, true, Session, false, false, false),
            (Strategy::Default, true, Session, false, true, true),
            (Strategy::Default, true, Eventual, true, false, false),
            (Strategy::Default, true, Strong, true, false, false),
            (Strategy::Default, true, BoundedStaleness, true, true, false),
            (Strategy::Session, true, Eventual, true, false, true),
            (Strategy::Eventual, true, Session, true, false, false),
            (Strategy::LatestCommitted, true, Session, true, false, false),
            (Strategy::Session, false, Session, true, false, false),
        ] {
            let settings = ConsistencySettings { read_strategy: strategy, track_sessions: tracked };
            assert_eq!(
                sends_token(&settings, account, read, multi_write),
                sent,
                "{strategy:?} {tracked} {account:?} {read} {multi_write}"
            );
        }
    }
}
