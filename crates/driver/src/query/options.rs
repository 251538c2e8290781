//! The options of a query: page size, concurrency, and the part of the container.

use std::num::{NonZeroU32, NonZeroUsize};

use protocol::partition::EpkRange;

/// How a query is paged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueryOptions {
    /// The most rows of a page. Default: 1000, or what the service gives.
    pub page_items: Option<NonZeroU32>,
    /// Requests at a time. Default: 8.
    pub parallel_max: NonZeroUsize,
    /// Where an earlier page of the same query stopped.
    pub continuation: Option<String>,
    /// The part of the container to look at. Default: all of it.
    pub range: Option<EpkRange>,
    /// What rows are to be no older than, instead of what this driver has seen. Default: none.
    pub session_token: Option<String>,
    /// Whether only those ranges are asked that the query's conditions on the partition key allow, each by itself. A
    /// query for many keys is better asked of each partition once. Default: yes.
    pub range_pruning: bool,
}

impl Default for QueryOptions {
    fn default() -> QueryOptions {
        let parallel_max = NonZeroUsize::new(8).expect("8 is not zero");
        QueryOptions {
            page_items: None,
            parallel_max,
            continuation: None,
            range: None,
            session_token: None,
            range_pruning: true,
        }
    }
}

impl QueryOptions {
    /// Query options with every default.
    pub fn new() -> QueryOptions {
        QueryOptions::default()
    }

    /// Sets the most rows of a page.
    #[must_use]
    pub fn with_page_items(self, items: NonZeroU32) -> QueryOptions {
        QueryOptions { page_items: Some(items), ..self }
    }

    /// Sets how many requests are made at a time.
    #[must_use]
    pub fn with_parallel_max(self, requests: NonZeroUsize) -> QueryOptions {
        QueryOptions { parallel_max: requests, ..self }
    }

    /// Continues where an earlier page of the same query stopped.
    #[must_use]
    pub fn with_continuation(self, continuation: impl Into<String>) -> QueryOptions {
        QueryOptions { continuation: Some(continuation.into()), ..self }
    }

    /// Sees at least what this session token has seen, instead of what this driver has. It may be of several
    /// partitions, between commas: each is asked for its own part.
    #[must_use]
    pub fn with_session_token(self, token: impl Into<String>) -> QueryOptions {
        QueryOptions { session_token: Some(token.into()), ..self }
    }

    /// Looks at a part of the container only.
    #[must_use]
    pub fn with_range(self, range: EpkRange) -> QueryOptions {
        QueryOptions { range: Some(range), ..self }
    }

    /// Asks each partition once, whatever the query says about the partition key.
    #[must_use]
    pub fn without_range_pruning(self) -> QueryOptions {
        QueryOptions { range_pruning: false, ..self }
    }
}
