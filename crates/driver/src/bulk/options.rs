//! The options of a bulk: batch sizes, concurrency and retry time.

use std::num::NonZeroUsize;
use std::time::Duration;

use protocol::batch::BATCH_OPERATIONS_MAX;

use crate::options::OperationOptions;

/// How a bulk groups, sends and retries its operations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BulkOptions {
    /// Operations of one request. Default and maximum: 100, which is what the service takes.
    pub batch_operations_max: NonZeroUsize,
    /// Bytes of one request; a larger item is sent alone. Default: 220 KB, which is quick to send again.
    pub batch_bytes_max: usize,
    /// How long an operation waits for others before its request is sent. Default: 10 ms.
    pub linger: Duration,
    /// Requests in flight to all partitions. Default: 64.
    pub requests_max: NonZeroUsize,
    /// Requests in flight to one partition, once its congestion window has grown so far. Default: 16.
    pub requests_per_partition_max: NonZeroUsize,
    /// Operations accepted and not yet completed; the input is not read beyond it. Default: 10,000.
    pub waiting_max: NonZeroUsize,
    /// Bytes of those, beyond which the input is not read either. Default: 64 MB.
    pub waiting_bytes_max: usize,
    /// How long a partition may reject an operation before it fails. While the partition accepts others,
    /// those it throttles wait on; see the module. Default: 60 s.
    pub retry_for: Duration,
    /// Whether the response of a write contains the item as it was stored. Default: no.
    pub returns_content: bool,
    /// The session token whose writes reads see at least, instead of this driver's. Default: none.
    pub session_token: Option<String>,
    /// Options of each request.
    pub operation: OperationOptions,
}

impl Default for BulkOptions {
    fn default() -> BulkOptions {
        let number = |number| NonZeroUsize::new(number).expect("not zero");
        BulkOptions {
            batch_operations_max: number(BATCH_OPERATIONS_MAX),
            batch_bytes_max: 220_000,
            linger: Duration::from_millis(10),
            requests_max: number(64),
            requests_per_partition_max: number(16),
            waiting_max: number(10_000),
            waiting_bytes_max: 64 << 20,
            retry_for: Duration::from_secs(60),
            returns_content: false,
            session_token: None,
            operation: OperationOptions::new(),
        }
    }
}

impl BulkOptions {
    /// Options with the default values.
    pub fn new() -> BulkOptions {
        BulkOptions::default()
    }

    /// Sets how many operations and bytes one request has at most.
    #[must_use]
    pub fn with_batch(self, operations: NonZeroUsize, bytes: usize) -> BulkOptions {
        BulkOptions { batch_operations_max: operations, batch_bytes_max: bytes, ..self }
    }

    /// Sets how long an operation waits for others.
    #[must_use]
    pub fn with_linger(self, linger: Duration) -> BulkOptions {
        BulkOptions { linger, ..self }
    }

    /// Sets how many requests are in flight at a time.
    #[must_use]
    pub fn with_requests_max(self, requests: NonZeroUsize) -> BulkOptions {
        BulkOptions { requests_max: requests, ..self }
    }

    /// Sets how many operations are accepted and not yet completed.
    #[must_use]
    pub fn with_waiting_max(self, operations: NonZeroUsize) -> BulkOptions {
        BulkOptions { waiting_max: operations, ..self }
    }

    /// Sets how long a partition may reject an operation.
    #[must_use]
    pub fn with_retry_for(self, time: Duration) -> BulkOptions {
        BulkOptions { retry_for: time, ..self }
    }

    /// Returns the item as it was stored in the responses of writes.
    #[must_use]
    pub fn returning_content(self) -> BulkOptions {
        BulkOptions { returns_content: true, ..self }
    }

    /// Sees at least what this session token has seen, instead of what this driver has. It may be of several
    /// partitions, between commas: each is asked for its own part.
    #[must_use]
    pub fn with_session_token(self, token: impl Into<String>) -> BulkOptions {
        BulkOptions { session_token: Some(token.into()), ..self }
    }

    /// Sets the options of each request.
    #[must_use]
    pub fn with_operation(self, operation: OperationOptions) -> BulkOptions {
        BulkOptions { operation, ..self }
    }

    /// Operations of one request, as far as the service takes them.
    pub(super) fn batch_operations(&self) -> usize {
        self.batch_operations_max.get().min(BATCH_OPERATIONS_MAX)
    }
}
