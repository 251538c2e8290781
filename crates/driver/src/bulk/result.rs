//! The result of each operation, and the summary of a bulk.

use std::time::Duration;

use bytes::Bytes;
use protocol::partition_range::RangeId;
use protocol::status::Status;

use crate::error::Error;

/// The result of one operation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkResult {
    /// The index of the operation in the input, counted from 0.
    pub index: u64,
    /// Request units of all attempts, rejected ones included.
    pub charge: f64,
    /// How often it was sent.
    pub attempts: u32,
    /// The response, or the final error.
    pub outcome: Result<BulkItemResponse, Error>,
}

/// The response to an operation that was carried out.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkItemResponse {
    /// Its status: 2xx, or 304 of a conditional read.
    pub status: Status,
    /// The ETag of the item that was read or written.
    pub etag: Option<String>,
    /// The item as JSON: of a read, and of a write if that was asked for; otherwise empty.
    pub body: Bytes,
}

/// The work of a bulk so far.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BulkSummary {
    /// Operations that were accepted.
    pub operations: u64,
    /// Operations that were carried out.
    pub succeeded: u64,
    /// Operations that ended with an error.
    pub failed: u64,
    /// Requests that were sent.
    pub requests: u64,
    /// Operations in those requests, retries included.
    pub sent: u64,
    /// How often operations were throttled.
    pub throttled: u64,
    /// How often the operations were divided over new partitions.
    pub regrouped: u64,
    /// Request units of all requests.
    pub charge: f64,
    /// Time since the first operation was accepted.
    pub elapsed: Duration,
    /// The congestion window of each partition, in the order of their ids.
    pub windows: Vec<(RangeId, usize)>,
}
