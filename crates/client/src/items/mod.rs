//! Operations on the items of a container: reads, writes, patches, batches, bulk, queries and the change feed, also as
//! a view of the container with one type of items.

mod batch;
mod bulk;
mod change_feed;
mod patch;
mod query;
mod read;
mod read_many;
mod typed;
mod write;

pub use batch::{Batch, BatchItem, BatchResponse};
pub use bulk::{Bulk, BulkItem, BulkItemResponse, BulkOperation, BulkResponse, BulkResults};
pub use change_feed::{Changes, ChangesPage, FollowChanges};
pub use patch::Patch;
pub use query::{Page, Pages, Query, QueryItems};
pub use read::ReadItem;
pub use read_many::{ItemIdentity, ReadMany, ReadManyResponse};
pub use typed::TypedContainer;
pub use write::WriteItem;
