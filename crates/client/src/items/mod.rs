//! Operations on the items of a container, one file each.

mod batch;
mod bulk;
mod change_feed;
mod create;
mod delete;
mod patch;
mod query;
mod read;
mod replace;
mod upsert;
mod write;

pub use batch::{Batch, BatchItem, BatchResponse};
pub use bulk::{Bulk, BulkAnswer, BulkItem, BulkOperation, BulkResponse, BulkResults};
pub use change_feed::{Changes, ChangesPage, FollowChanges};
pub use patch::Patch;
pub use query::{Page, Pages, Query, QueryItems};
pub use read::ReadItem;
pub use write::WriteItem;
