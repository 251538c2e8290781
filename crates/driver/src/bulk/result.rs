//! What became of each operation, and of all of them.

use std::time::Duration;

use bytes::Bytes;
use protocol::partition_range::RangeId;
use protocol::status::Status;

use crate::error::Error;

/// What became of one operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkResult {
    /// Which one of the input it was, counted from 0.
    pub index: u64,
    /// Request units it cost, rejections included.
    pub charge: f64,
    /// How often it was sent.
    pub attempts: u32,
    /// What it came to.
    pub outcome: Result<BulkItemResponse, Error>,
}

/// The response to an operation that did what it asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkItemResponse {
    /// Its status: 2xx, or 304 of a conditional read.
    pub status: Status,
    /// The version it read or left.
    pub etag: Option<String>,
    /// The item as JSON: of a read, and of a write if that was asked for; otherwise empty.
    pub body: Bytes,
}

/// What a bulk did so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BulkSummary {
    /// Operations that were handed in.
    pub operations: u64,
    /// Of which so many did what they asked.
    pub succeeded: u64,
    /// And so many did not.
    pub failed: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Operations in them; more than were handed in when some were sent again.
    pub sent: u64,
    /// Operations that were rejected for their number, each time.
    pub throttled: u64,
    /// How often the operations were divided over new partitions.
    pub regrouped: u64,
    /// Request units of everything.
    pub charge: f64,
    /// Time since the first operation was handed in.
    pub elapsed: Duration,
    /// How far the window of each partition is open, in the order of their numbers.
    pub windows: Vec<(RangeId, usize)>,
}
