//! Operations on the items of a container: reads, writes, patches, batches, bulk, queries and the change feed.

mod batch;
mod bulk;
mod change_feed;
mod patch;
mod query;
mod read;
mod write;

pub use batch::{Batch, BatchItem, BatchResponse};
pub use bulk::{Bulk, BulkItem, BulkItemResponse, BulkOperation, BulkResponse, BulkResults};
pub use change_feed::{Changes, ChangesPage, FollowChanges};
pub use patch::Patch;
pub use query::{Page, Pages, Query, QueryItems};
pub use read::ReadItem;
pub use write::WriteItem;
