//! Many operations at once: each by itself, in requests of up to a hundred per physical partition.
//!
//! In: a stream of [`BulkOperation`]s. Out: a stream of [`BulkResult`]s, one for each, in the order in which
//! they are done; the index says which one it was. Operations on the same item keep no order among
//! themselves: a caller that depends on one waits for its result.
//!
//! - **Grouping.** Operations wait in a queue per partition until a request is full, by number or by bytes, or
//!   has waited long enough. The input is not read while as many wait as the options allow.
//! - **Congestion.** Each queue has a congestion window that grows while the partition responds without errors and
//!   shrinks when it throttles, fails or is slow. Operations that a partition rejected are retried first, after
//!   the wait it asked for.
//! - **Splits.** Operations of a partition that is gone are divided over those that took its place.
//! - **Batches that are too large.** A request that is too large, or invalid because of one operation, is retried in
//!   halves, until the invalid operation fails alone.
//! - **Lost responses.** An operation that may have been done is sent again only if that does no harm: reads, and
//!   those the caller calls [`repeatable`](BulkOperation::repeatable). Any other ends as
//!   [`Undecided`](crate::ErrorKind::Undecided), and so does a repeated one whose earlier attempt may have
//!   caused the response (409 of a create, 404 of a delete, 412 of a conditional write): a conflict is reported as one only
//!   when another client certainly caused it.
//! - **Time.** An operation is given up when it was rejected for [`BulkOptions::retry_for`]. One that is only
//!   throttled waits as long as its partition takes others, and at most ten times that.
//!
//! The work is done while the stream is polled, without tasks of its own: dropping it cancels the requests in
//! flight, and a caller that does not take results slows the input down.

mod congestion_window;
mod dispatch;
mod operation;
mod options;
mod outcome;
mod partition_queue;
mod response;
mod result;
mod stream;

#[cfg(test)]
mod tests;

pub use operation::BulkOperation;
pub use options::BulkOptions;
pub use result::{BulkItemResponse, BulkResult, BulkSummary};
pub use stream::BulkStream;
